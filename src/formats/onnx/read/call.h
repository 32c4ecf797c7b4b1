// SPDX-License-Identifier: Apache-2.0
// One ONNX node while it is converted: its inputs as values of the graph, its attributes checked
// for their type, and the graph to add to. What a converter neither reads nor ignores is an error:
// an attribute that is silently dropped is a wrong result.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/node_builder.h"
#include "formats/onnx/schema/model.h"
#include "graph/known.h"

namespace anymps::onnx {

class Call : public NodeBuilder {
 public:
  Call(anymps::Graph& graph, const Node& node, int64_t opset, Values inputs, std::string name)
      : NodeBuilder(graph, std::move(name)), node(node), opset(opset), inputs_(std::move(inputs)) {}

  const Node& node;
  const int64_t opset;  // of the node's domain

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node.outputs.size(); }
  bool wants(size_t output) const;  // somebody may use this output
  Value* in(size_t i);              // fails when it is left out
  Value* opt(size_t i);             // null when it is left out
  Values all();                     // of a variadic op; at least one

  bool has(const char* attribute) const { return node.find(attribute) != nullptr; }
  int64_t i(const char* attribute, std::optional<int64_t> otherwise = std::nullopt);
  double f(const char* attribute, std::optional<double> otherwise = std::nullopt);
  std::string s(const char* attribute, std::optional<std::string> otherwise = std::nullopt);
  std::optional<std::vector<int64_t>> ints(const char* attribute);
  std::optional<std::vector<float>> floats(const char* attribute);
  std::optional<std::vector<std::string>> strings(const char* attribute);
  const Tensor* tensor(const char* attribute);
  // The element type of which ONNX's number stands in an attribute.
  DType dtype(const char* attribute, std::optional<DType> otherwise = std::nullopt);
  bool flag(const char* attribute, bool otherwise) { return i(attribute, otherwise) != 0; }
  // Attributes and inputs that have no bearing on inference.
  void ignore(std::initializer_list<const char*> attributes);
  void ignore_input(size_t i) { read_inputs_.insert(i); }
  // Fails on the first attribute or input that nobody asked for.
  void check_all_read() const;

  // An axis attribute in [-rank, rank) as one in [0, rank).
  int64_t axis(const char* attribute, std::optional<int64_t> otherwise, int64_t rank);

 private:
  const Attribute* read(const char* attribute, Attribute::Type type, bool required);

  Values inputs_;
  std::set<std::string, std::less<>> read_attributes_;
  std::set<size_t> read_inputs_;
};

// The elements of a floating-point constant.
std::optional<std::vector<double>> known_floats(const Value* value);

}  // namespace anymps::onnx
