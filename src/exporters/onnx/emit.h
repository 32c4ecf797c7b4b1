// SPDX-License-Identifier: Apache-2.0
// One node while it is written as ONNX: the names of its inputs, and the nodes and constants that
// stand for it. A writer is one small function named after the op of the table.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace anymps::onnx {

using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

struct OutAttr {
  std::string name;
  std::variant<int64_t, double, std::string, Ints> value;
  OutAttr(std::string n, int64_t v) : name(std::move(n)), value(v) {}
  OutAttr(std::string n, int v) : name(std::move(n)), value(int64_t{v}) {}
  OutAttr(std::string n, bool v) : name(std::move(n)), value(int64_t{v}) {}
  OutAttr(std::string n, double v) : name(std::move(n)), value(v) {}
  OutAttr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  OutAttr(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  OutAttr(std::string n, Ints v) : name(std::move(n)), value(std::move(v)) {}
};
using OutAttrs = std::vector<OutAttr>;

// The number that ONNX gives to a dtype; fails where it has none.
int32_t data_type_of(DType dtype);

// The parts of a GraphProto, in wire format.
class GraphWriter {
 public:
  std::string unique(const std::string& stem);
  Names node(std::string_view op, const Names& inputs, const OutAttrs& attrs, size_t outputs,
             const std::string& stem);
  std::string constant(const anymps::Constant& constant, const std::string& name);
  void alias(const std::string& from, const std::string& to);  // an Identity

  std::string nodes, initializers;  // repeated fields, one after the other

 private:
  void write_node(std::string_view op, const Names& inputs, const Names& outputs,
                  const OutAttrs& attrs);
  std::unordered_set<std::string> taken_;
};

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
struct Writer {
  std::string_view op;
  Write write = nullptr;
  const char* same_as = nullptr;  // the ONNX op with the same inputs and no attributes

  Writer(std::string_view op, Write write) : op(op), write(write) {}
  Writer(std::string_view op, const char* same_as) : op(op), same_as(same_as) {}
};
const Writer* find_writer(std::string_view op);  // null: none

// The families.
std::span<const Writer> data_writers();
std::span<const Writer> elementwise_writers();
std::span<const Writer> layer_writers();
std::span<const Writer> move_writers();

// The activation that is fused into a convolution or a product.
std::string activated(Emit& e, const std::string& x, const char* alpha, const char* beta);

}  // namespace anymps::onnx
