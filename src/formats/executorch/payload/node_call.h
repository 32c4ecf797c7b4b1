// SPDX-License-Identifier: Apache-2.0
// One node of a payload while it is converted: the values that its fields name, its attributes,
// and the graph to add to. Fields are those of schema/payload_fields.h.
//
// Numbers follow PyTorch, since the exported module's own results are the truth. Types are those
// that flow at run time: in half precision the exporter casts the inputs in place and declares
// float32 all the same. What is declared decides only where a result must be an integer or a bool,
// or where integers become floats.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "formats/executorch/payload/payload_values.h"
#include "formats/executorch/program/flat.h"
#include "formats/executorch/schema/payload_fields.h"
#include "formats/node_builder.h"

namespace anymps::executorch {

class NodeCall : public NodeBuilder {
 public:
  NodeCall(Graph& graph, PayloadValues& values, const FlatTable& node, const FlatTable& fields,
           std::string name)
      : NodeBuilder(graph, std::move(name)), node(node), fields(fields), values_(values) {}

  const FlatTable& node;    // MPSNode
  const FlatTable& fields;  // the table of its kind

  Value* in(FlatField field);
  Value* opt(FlatField field);  // null: -1
  Values ins(FlatField field);  // a list; null entries: -1

  // What the node gives. It gets the declared shape where a Python number has made a [1] of a
  // scalar, and the declared kind of type.
  void out(FlatField field, Value* value);
  void outs(FlatField field, const Values& values);  // a list
  void out_later(FlatField field, std::function<Value*()> make);
  void out_converted(FlatField field, Value* value);  // of a cast

  int64_t i(FlatField field) const { return fields.scalar<int32_t>(field); }
  int64_t l(FlatField field) const { return fields.scalar<int64_t>(field); }
  double f(FlatField field) const { return double{fields.scalar<float>(field)}; }
  bool b(FlatField field) const { return fields.scalar<uint8_t>(field) != 0; }
  std::string s(FlatField field) const { return std::string(fields.string(field)); }
  DType dtype(FlatField field) const { return to_dtype_of_mps(fields, field); }
  Ints ints(FlatField field) const;
  // A list whose length another field repeats.
  Ints counted(FlatField count, FlatField field) const;

  DType declared_type(FlatField field) const;
  const Ints& declared_dims(FlatField field) const;

  // The type in which PyTorch computes with these values.
  DType promoted(const Values& values) const;
  // The same, but as the result in this field is declared when that is an integer or a bool, or
  // when it is a float and none of the values is.
  DType computed(const Values& values, FlatField field) const;
  Value* as(Value* x, DType type);  // a cast; of a single number, another number
  Value* as_float(Value* x, FlatField field) { return as(x, computed_float(x, field)); }
  Value* as_index(Value* x);  // i32 and i64 stay
  // The number that fills all of a value, where that is known.
  static std::optional<double> number_of(const Value* value);

  Value* reshaped(Value* x, const Ints& shape);

 private:
  DType computed_float(Value* x, FlatField field) const;
  size_t id(FlatField field) const { return values_.id(fields, i(field), field); }
  Value* fitted(Value* value, size_t id);

  PayloadValues& values_;
};

using ConvertNode = void (*)(NodeCall&);

struct NodeConverter {
  std::string kind;  // "MPSAdd"
  ConvertNode convert = nullptr;
  // Set instead of `convert` where an op of the table does the same to the one input.
  const Op* same_as = nullptr;
};

// A list of converters, which registers itself: a family has one as a static of its file.
struct NodeConverters {
  NodeConverters(std::initializer_list<NodeConverter> list);
};

void convert_node(const NodeConverter& converter, NodeCall& call);

}  // namespace anymps::executorch
