// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/export.h"

#include <algorithm>
#include <cctype>
#include <protozero/pbf_writer.hpp>

#include "exporters/onnx/emit.h"

namespace anymps::onnx {

namespace {

constexpr int64_t kOpset = 21, kIrVersion = 10;
constexpr size_t kLargest = size_t{1} << 31;  // of a protobuf message

// Field numbers of onnx.proto.
enum ModelField { kVersion = 1, kProducer = 2, kGraph = 7, kOpsetImport = 8 };
enum OpsetField { kOpsetVersion = 2 };
enum GraphField { kGraphName = 2, kGraphInput = 11, kGraphOutput = 12 };
enum InfoField { kInfoName = 1, kInfoType = 2 };
enum TypeField { kTensorType = 1, kElemType = 1, kShape = 2, kDim = 1, kValue = 1, kParam = 2 };

// A plain symbol; an expression over symbols is not written.
bool is_name(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

void write_info(protozero::pbf_writer& graph, uint32_t field, const std::string& name,
                const ValueType& type) {
  require(type.container == Container::kTensor, "[onnx] \"{}\" is a {}, which cannot be written",
          name, anymps::name(type.container));
  protozero::pbf_writer info(graph, field);
  info.add_string(kInfoName, name);
  protozero::pbf_writer kind(info, kInfoType);
  protozero::pbf_writer tensor(kind, kTensorType);
  tensor.add_int32(kElemType, data_type_of(type.dtype));
  if (!type.ranked) return;
  std::string shape;  // a message without fields counts too: a scalar, an extent that is not known
  for (const Dim& extent : type.shape) {
    std::string dim;
    if (extent.known())
      protozero::pbf_writer(dim).add_int64(kValue, extent.value());
    else if (is_name(extent.str()))
      protozero::pbf_writer(dim).add_string(kParam, extent.str());
    protozero::pbf_writer(shape).add_message(kDim, dim);
  }
  tensor.add_message(kShape, shape);
}

class Exporter {
 public:
  explicit Exporter(const anymps::Graph& graph) : graph_(graph) {}

  std::string run() {
    for (const Value* value : graph_.inputs()) names_[value] = writer_.unique(value->name);
    Names outputs;
    for (const Value* value : graph_.outputs())
      outputs.push_back(value->is_input() ? writer_.unique(value->name + "_out")
                                          : writer_.unique(value->name));
    for (const auto& node : graph_.nodes()) write(*node);
    refuse_what_is_missing();
    for (size_t i = 0; i < outputs.size(); ++i)
      writer_.alias(name_of(graph_.outputs()[i]), outputs[i]);
    return model(outputs);
  }

 private:
  const std::string& name_of(const Value* value) {
    auto found = names_.find(value);
    if (found != names_.end()) return found->second;
    return names_[value] = writer_.constant(*value->constant, value->name);
  }

  void write(const anymps::Node& node) {
    const Writer* writer = find_writer(node.op->name);
    std::string why = writer ? "" : "there is no ONNX op for it";
    Names results(node.outputs.size());
    if (writer) {
      try {
        Names inputs;
        for (const Value* value : node.inputs)
          inputs.push_back(value ? name_of(value) : std::string());
        Emit emit(writer_, node, inputs);
        if (!writer->same_as)
          results = writer->write(emit);
        else
          results = {emit.add(writer->same_as, emit.all())};
        emit.check_all_read();
        results.resize(node.outputs.size());
      } catch (const Error& error) {
        if (error.code() != Code::kUnsupported) throw;
        why = error.what();
      }
    }
    if (!why.empty())
      missing_.push_back(fmt::format("{} ({}): {}", node.op->name, node.label(), why));
    for (size_t i = 0; i < results.size(); ++i) names_[node.outputs[i]] = results[i];
  }

  void refuse_what_is_missing() {
    if (missing_.empty()) return;
    const size_t count = missing_.size();
    if (count > 20) missing_.resize(20);
    fail(Code::kUnsupported, "[onnx] {} node{} cannot be written as ONNX: {}{}", count,
         count == 1 ? "" : "s", fmt::join(missing_, "; "), count > 20 ? "; …" : "");
  }

  std::string model(const Names& outputs) {
    std::string graph_bytes = writer_.nodes;
    protozero::pbf_writer graph(graph_bytes);
    graph.add_string(kGraphName, graph_.name.empty() ? std::string("graph") : graph_.name);
    graph_bytes += writer_.initializers;
    for (const Value* value : graph_.inputs())
      write_info(graph, kGraphInput, names_[value], value->type);
    for (size_t i = 0; i < outputs.size(); ++i)
      write_info(graph, kGraphOutput, outputs[i], graph_.outputs()[i]->type);
    if (graph_bytes.size() >= kLargest - 4096)
      fail(Code::kUnsupported, "[onnx] the model has {} bytes, a file can have 2 GiB",
           graph_bytes.size());
    std::string bytes;
    protozero::pbf_writer model(bytes);
    model.add_int64(kVersion, kIrVersion);
    model.add_string(kProducer, "anymps");
    {
      protozero::pbf_writer import(model, kOpsetImport);
      import.add_int64(kOpsetVersion, kOpset);
    }
    model.add_message(kGraph, graph_bytes);
    return bytes;
  }

  const anymps::Graph& graph_;
  GraphWriter writer_;
  std::unordered_map<const Value*, std::string> names_;
  std::vector<std::string> missing_;
};

}  // namespace

std::string export_model(const anymps::Graph& graph) { return Exporter(graph).run(); }

}  // namespace anymps::onnx
