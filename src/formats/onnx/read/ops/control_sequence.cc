// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, and optionals.
#include "formats/onnx/read/importer.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

ONNX_READ(SequenceEmpty) {
  return {c.add("sequence_empty", {}, {{"dtype", c.dtype("dtype", DType::kF32)}})};
}

ONNX_READ(SequenceInsert) { return {c.add("sequence_insert", {c.in(0), c.in(1), c.opt(2)})}; }

ONNX_READ(SequenceErase) { return {c.add("sequence_erase", {c.in(0), c.opt(1)})}; }

ONNX_READ(SplitToSequence) {
  return {c.add("split_to_sequence", {c.in(0), c.opt(1)},
                {{"axis", c.i("axis", 0)}, {"keep_dims", c.flag("keepdims", true)}})};
}

ONNX_READ(ConcatFromSequence) {
  return {c.add("concat_from_sequence", {c.in(0)},
                {{"axis", c.i("axis")}, {"new_axis", c.flag("new_axis", false)}})};
}

ONNX_READ(Optional) {
  c.ignore({"type"});
  if (Value* x = c.opt(0)) return {c.add("optional", {x})};
  const Attribute* attribute = c.node.find("type");
  c.check(attribute && attribute->type == Attribute::Type::kTypeProto,
          "without an input, attribute 'type' is needed");
  const ValueType type = to_type(attribute->types[0]);
  c.check(type.container == Container::kTensor || type.container == Container::kSequence,
          "attribute 'type' must be a tensor or a sequence");
  return {c.add("optional", {},
                {{"dtype", type.dtype}, {"sequence", type.container == Container::kSequence}})};
}

ONNX_READ(OptionalHasElement) { return {c.add("optional_has_element", {c.opt(0)})}; }

}  // namespace

}  // namespace anymps::onnx
