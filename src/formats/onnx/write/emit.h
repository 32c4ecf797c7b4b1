// SPDX-License-Identifier: Apache-2.0
// One node while it is written as ONNX: the names of its inputs, and the nodes and constants that
// stand for it. An op of the table is written by a small function that registers itself:
//   ONNX_WRITE(flatten) { return {e.add("Flatten", {e.in(0)}, …)}; }
// An op that ONNX has alike needs none: its record has ONNX's name.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "formats/onnx/write/graph_writer.h"

namespace anymps::onnx {

// A node's attributes, with a note of those that were read: one that is not, and is not as the
// record has it, would be lost.
class ReadAttrs {
 public:
  explicit ReadAttrs(const Attrs& attrs) : attrs_(attrs) {}
  int64_t i(const char* name) const { return read(name).i(name); }
  bool b(const char* name) const { return read(name).b(name); }
  double f(const char* name) const { return read(name).f(name); }
  const std::string& s(const char* name) const { return read(name).s(name); }
  DType dtype(const char* name) const { return read(name).dtype(name); }
  const Ints& ints(const char* name) const { return read(name).ints(name); }
  const std::vector<double>& floats(const char* name) const { return read(name).floats(name); }
  const anymps::Graph& graph(const char* name) const { return *read(name).graph(name); }
  const Attrs& all(std::initializer_list<const char*> names) const {
    read_.insert(names.begin(), names.end());
    return attrs_;
  }
  void check_all_read() const;  // refuses

 private:
  const Attrs& read(const char* name) const { return read_.insert(name), attrs_; }
  const Attrs& attrs_;
  mutable std::unordered_set<std::string> read_;
};

class Emit {
 public:
  Emit(GraphWriter& writer, const anymps::Node& node, Names inputs)
      : node(node), writer_(writer), inputs_(std::move(inputs)), attrs_(node.attrs) {}

  const anymps::Node& node;
  const ReadAttrs& attrs() const { return attrs_; }
  bool has(size_t i) const { return node.input(i) != nullptr; }
  const std::string& in(size_t i) const;  // "" if it is absent
  Names all() const;
  void check_all_read() const;  // refuses what would be lost: inputs and attributes
  const Value& value(size_t i) const { return *node.input(i); }
  DType dtype(size_t i = 0) const { return value(i).dtype(); }
  int64_t rank(size_t i = 0) const;  // refuses while it is not known

  std::string add(std::string_view op, const Names& inputs, const OutAttrs& attrs = {});
  Names add_all(std::string_view op, const Names& inputs, const OutAttrs& attrs, size_t outputs);
  std::string floats(const std::vector<double>& values);  // an f32 vector
  std::string ints(const Ints& values);                   // an i64 vector
  std::string number(DType dtype, double value);          // a scalar
  std::string cast(const std::string& x, DType to);
  std::string transpose(const std::string& x, const Ints& perm);
  std::string scalar(size_t i);  // input i, an integer, as an i64 without axes
  // The nodes of another graph in this place; the names of its results.
  Names inlined(const anymps::Graph& body, const Names& inputs);
  // A graph for an attribute: `write` gets the names of its inputs and adds its nodes to `inner`.
  using Body = std::function<Names(Emit& inner, const Names& inputs)>;
  OutGraph graph(const std::vector<ValueType>& inputs, const std::vector<ValueType>& outputs,
                 const Body& write);
  // Input i if it is there, else the attribute as a constant.
  std::string list(size_t i, const char* attr);

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Code::kUnsupported, format, std::forward<Args>(args)...);
  }

 private:
  GraphWriter& writer_;
  Names inputs_;
  ReadAttrs attrs_;
  mutable std::unordered_set<size_t> read_;
};

using Write = Names (*)(Emit&);
// How an op of the table is written; null: not at all.
Write find_write(const Op& op);

struct WriteRegistrar {
  WriteRegistrar(const char* op, Write write);
};

#define ONNX_WRITE(op)                                                      \
  static ::anymps::onnx::Names write_##op(::anymps::onnx::Emit& e);         \
  static const ::anymps::onnx::WriteRegistrar writer_##op(#op, write_##op); \
  static ::anymps::onnx::Names write_##op(::anymps::onnx::Emit& e)

// Writes the nodes of a graph; its inputs have these names. The names of its outputs. Fails
// (kUnsupported) with a list of the nodes that ONNX has no op for.
Names write_nodes(GraphWriter& writer, const anymps::Graph& graph, const Names& inputs);

Ints counted(int64_t count);                      // 0, 1, …
std::string last_two_swapped(Emit& e, size_t i);  // the axes of input i

// [N, …, C] -> [N, C, …] and back, by the node's attribute `layout`; a tensor whose channels come
// first stays as it is.
struct Layout {
  Emit& e;
  bool last;
  explicit Layout(Emit& emit) : e(emit), last(emit.attrs().s("layout") == "channels_last") {}
  std::string first(const std::string& x, int64_t rank) const;
  std::string back(const std::string& y, int64_t rank) const;
};

// The activation that is fused into a convolution or a product.
std::string activated(Emit& e, const std::string& x, const char* alpha, const char* beta);

}  // namespace anymps::onnx
