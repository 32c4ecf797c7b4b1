// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/write/export.h"

#include <protozero/pbf_writer.hpp>

#include "formats/onnx/schema/fields.h"
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

constexpr int64_t kOpset = 21, kIrVersion = 10;
constexpr size_t kLargest = size_t{1} << 31;  // of a protobuf message

class NodeWriter {
 public:
  NodeWriter(GraphWriter& writer, const anymps::Graph& graph, const Names& inputs)
      : writer_(writer), graph_(graph) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) names_[graph.inputs()[i]] = inputs.at(i);
  }

  Names run() {
    for (const auto& node : graph_.nodes()) write(*node);
    refuse_what_is_missing();
    Names outputs;
    for (const Value* value : graph_.outputs()) outputs.push_back(name_of(value));
    return outputs;
  }

 private:
  const std::string& name_of(const Value* value) {
    auto found = names_.find(value);
    if (found != names_.end()) return found->second;
    return names_[value] = writer_.constant(*value->constant, value->name);
  }

  Names results_of(Write write, const anymps::Node& node) {
    Names inputs;
    for (const Value* value : node.inputs) inputs.push_back(value ? name_of(value) : std::string());
    Emit emit(writer_, node, inputs);
    Names results = write(emit);
    emit.check_all_read();
    results.resize(node.outputs.size());
    for (size_t i = 0; i < results.size(); ++i)
      if (!results[i].empty()) writer_.set_dtype(results[i], node.outputs[i]->dtype());
    return results;
  }

  void write(const anymps::Node& node) {
    const Write write = find_write(*node.op);
    std::string why = write ? "" : "there is no ONNX op for it";
    Names results(node.outputs.size());
    if (write) {
      try {
        results = results_of(write, node);
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
    fail(Code::kUnsupported, "{} node{} cannot be written as ONNX: {}{}", count,
         count == 1 ? "" : "s", fmt::join(missing_, "; "), count > 20 ? "; …" : "");
  }

  GraphWriter& writer_;
  const anymps::Graph& graph_;
  std::unordered_map<const Value*, std::string> names_;
  std::vector<std::string> missing_;
};

std::string graph_bytes(const anymps::Graph& graph) {
  ModelNames model;
  GraphWriter writer(model);
  std::vector<OutInfo> inputs, outputs;
  Names names;
  for (const Value* value : graph.inputs()) {
    names.push_back(writer.unique(value->name));
    writer.set_dtype(names.back(), value->dtype());
    inputs.push_back({names.back(), value->type});
  }
  for (const Value* value : graph.outputs())  // before other names: they keep theirs
    outputs.push_back(
        {writer.unique(value->is_input() ? value->name + "_out" : value->name), value->type});
  const Names results = write_nodes(writer, graph, names);
  for (size_t i = 0; i < outputs.size(); ++i) writer.alias(results[i], outputs[i].name);
  return writer.bytes(graph.name.empty() ? "graph" : graph.name, inputs, outputs, true);
}

std::string model_bytes(const std::string& graph) {
  if (graph.size() >= kLargest - 4096)
    fail(Code::kUnsupported, "the model has {} bytes, a file can have 2 GiB", graph.size());
  std::string bytes;
  protozero::pbf_writer model(bytes);
  model.add_int64(field::Model::kIrVersion, kIrVersion);
  model.add_string(field::Model::kProducerName, "anymps");
  {
    protozero::pbf_writer import(model, field::Model::kOpsetImport);
    import.add_int64(field::OpsetId::kVersion, kOpset);
  }
  model.add_message(field::Model::kGraph, graph);
  return bytes;
}

}  // namespace

Names write_nodes(GraphWriter& writer, const anymps::Graph& graph, const Names& inputs) {
  return NodeWriter(writer, graph, inputs).run();
}

std::string export_model(const anymps::Graph& graph) {
  try {
    return model_bytes(graph_bytes(graph));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("[onnx] {}", error.what()));
  }
}

}  // namespace anymps::onnx
