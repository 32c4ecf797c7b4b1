// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/payload/payload.h"

#include <algorithm>

#include "formats/executorch/payload/node_kinds.h"
#include "formats/executorch/payload/payload_values.h"

namespace anymps::executorch {

namespace {

constexpr std::string_view kMagic = "MP00";
constexpr size_t kPayloadHeaderBytes = 24;
using field::MpsGraph;
using field::MpsNode;

// "name: MPSAdd[3]: what" for errors of the graph, which do not know of the file.
std::string located(const FlatBuffer& buffer, const FlatTable& table, const std::string& what) {
  if (what.starts_with(buffer.name() + ": ")) return what;
  return fmt::format("{}: {}: {}", buffer.name(), table.label(), what);
}

class PayloadImporter {
 public:
  PayloadImporter(Graph& graph, const Source& payload, std::string stem)
      : graph_(graph),
        parts_(split_payload(payload)),
        buffer_(parts_.graph, payload.name),
        root_(checked_root()),
        stem_(std::move(stem)),
        values_(graph, root_, payload, parts_.segment, stem_) {}

  // One value for each of input_ids, of the declared types.
  Values declared_inputs(const Ints* given) {
    Values inputs;
    size_t at = 0;
    for (const size_t id : ids(MpsGraph::kInputs)) {
      const std::string name = fmt::format("input{}", inputs.size());
      Dims shape;
      for (const int64_t declared : values_.dims(id)) {
        require(!given || at < given->size(), "{}: {} extents given, input {} needs more",
                buffer_.name(), given ? given->size() : 0, inputs.size());
        const int64_t extent = given ? (*given)[at++] : declared;
        require(extent >= -1, "{}: input {}: extent {}", buffer_.name(), inputs.size(), extent);
        shape.push_back(extent < 0 ? Dim::symbol(fmt::format("{}.{}", name, shape.size()))
                                   : Dim(extent));
      }
      inputs.push_back(graph_.input(name, values_.dtype(id), std::move(shape)));
    }
    require(!given || at == given->size(), "{}: {} extents given, the inputs have {}",
            buffer_.name(), given ? given->size() : 0, at);
    return inputs;
  }

  Values run(const Values& inputs) {
    set_inputs(inputs);
    const auto nodes = root_.tables(MpsGraph::kNodes, "MPSNode");
    for (size_t i = 0; i < nodes.size(); ++i) add(nodes[i], i);
    if (!unsupported_.empty())
      fail(Code::kUnsupported, "{}: {} of {} nodes {} not supported: {}", buffer_.name(),
           unsupported_.size(), nodes.size(), unsupported_.size() == 1 ? "is" : "are",
           fmt::join(unsupported_, "; "));
    try {
      return outputs();
    } catch (const NeverWritten& never) {
      throw never.error;
    }
  }

 private:
  FlatTable checked_root() const {
    if (buffer_.identifier() != kMagic)
      fail(Code::kCorrupt, "{}: the payload's graph is \"{}\", not MP00", buffer_.name(),
           buffer_.identifier());
    return buffer_.root("MPSGraph");
  }

  std::vector<size_t> ids(FlatField field) const {
    std::vector<size_t> result;
    for (const int32_t id : root_.numbers<int32_t>(field))
      result.push_back(values_.id(root_, id, field));
    return result;
  }

  void set_inputs(const Values& inputs) {
    const auto ids = this->ids(MpsGraph::kInputs);
    if (ids.size() != inputs.size())
      root_.fail(MpsGraph::kInputs, "it names {} inputs, but {} are given", ids.size(),
                 inputs.size());
    values_.exact = true;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Ints& dims = values_.dims(ids[i]);
      const ValueType& type = inputs[i]->type;
      if (type.ranked && type.shape.size() != dims.size())
        root_.fail(MpsGraph::kInputs, "input {} has the shape {}, but is declared [{}]", i,
                   to_string(type.shape), fmt::join(dims, ", "));
      values_.exact = values_.exact && type.ranked && type.shape == Dims(dims.begin(), dims.end());
      values_.set(ids[i], inputs[i]);
    }
  }

  void add(const FlatTable& node, size_t index) {
    const auto number = node.scalar<uint8_t>(MpsNode::kKind);
    if (number == 0 || number > node_kinds().size())
      node.fail(MpsNode::kKind, "there is no node kind {}", number);
    const std::string_view kind = node_kinds()[number - 1u];
    const FlatTable fields = node.table(MpsNode::kFields, kind.data());
    NodeCall call(graph_, values_, node, fields,
                  fmt::format("{}/{}_{}", stem_, label_of(kind), index));
    try {
      const NodeConverter* converter = find_node(kind);
      if (!converter) fields.unsupported(nullptr, "this kind of node is not known");
      convert_node(*converter, call);
    } catch (const NeverWritten& never) {
      if (unsupported_.empty()) throw never.error;  // otherwise what it needs is on the list
    } catch (const Error& error) {
      const std::string text = located(buffer_, fields, error.what());
      if (error.code() != Code::kUnsupported) throw Error(error.code(), text);
      unsupported_.push_back(text.substr(buffer_.name().size() + 2));
    }
  }

  // Results have their declared types, unless a cast has said otherwise. (A float64 is declared
  // float32.)
  Values outputs() {
    Values result;
    for (const size_t id : ids(MpsGraph::kOutputs)) {
      Value* value = values_.get(id, root_, MpsGraph::kOutputs);
      const DType type = values_.dtype(id);
      if (!values_.is_converted(id) && value->dtype() != DType::kF64)
        value = NodeBuilder(graph_, stem_).cast(value, type);
      result.push_back(value);
    }
    return result;
  }

  Graph& graph_;
  PayloadParts parts_;
  FlatBuffer buffer_;
  FlatTable root_;
  std::string stem_;
  PayloadValues values_;
  std::vector<std::string> unsupported_;
};

}  // namespace

bool is_payload(std::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == kMagic;
}

// Four zero bytes, the magic, u64 offset and u64 size of the constants, the FlatBuffer. Before
// constants had a segment there was the FlatBuffer alone, which starts with an offset.
PayloadParts split_payload(const Source& payload) {
  const std::string_view bytes = payload.bytes;
  const auto refuse = [&](const std::string& what) {
    fail(Code::kCorrupt, "{}: header of the payload: {}", payload.name, what);
  };
  if (!is_payload(bytes)) refuse("it does not start with MP00");
  if (bytes.substr(0, 4) != std::string_view("\0\0\0\0", 4)) return {bytes, {}};
  if (bytes.size() < kPayloadHeaderBytes)
    refuse(fmt::format("{} bytes are too short", bytes.size()));
  const auto offset = number_at<uint64_t>(bytes, 8), size = number_at<uint64_t>(bytes, 16);
  if (offset == 0 && size == 0) return {bytes.substr(kPayloadHeaderBytes), {}};
  if (offset < kPayloadHeaderBytes || offset > bytes.size() || size > bytes.size() - offset)
    refuse(fmt::format("a segment of {} bytes at byte {} does not fit into {} bytes", size, offset,
                       bytes.size()));
  return {bytes.substr(kPayloadHeaderBytes, offset - kPayloadHeaderBytes),
          bytes.substr(offset, size)};
}

Values add_payload(Graph& graph, const Source& payload, const Values& inputs,
                   const std::string& stem) {
  return PayloadImporter(graph, payload, stem).run(inputs);
}

std::unique_ptr<Graph> import_payload(const Source& payload, const Ints* dims) {
  auto graph = std::make_unique<Graph>();
  PayloadImporter importer(*graph, payload, "delegate0");
  Values outputs = importer.run(importer.declared_inputs(dims));
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Callers find a result by its place, so each output is a separate value.
    const bool seen = std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i),
                                outputs[i]) != outputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (seen || !outputs[i]->producer) outputs[i] = graph->add("identity", {outputs[i]});
    graph->rename(outputs[i], fmt::format("output{}", i));
  }
  require(!outputs.empty(), "{}: MPSGraph.output_ids: the payload has no outputs", payload.name);
  graph->set_outputs(std::move(outputs));
  graph->erase_dead();
  return graph;
}

}  // namespace anymps::executorch
