// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, and optionals.
#include "formats/onnx/read/importer.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

Values SequenceEmpty(Call& c) {
  return {c.add("sequence_empty", {}, {{"dtype", c.dtype("dtype", DType::kF32)}})};
}

Values SequenceInsert(Call& c) { return {c.add("sequence_insert", {c.in(0), c.in(1), c.opt(2)})}; }

Values SequenceErase(Call& c) { return {c.add("sequence_erase", {c.in(0), c.opt(1)})}; }

Values SplitToSequence(Call& c) {
  return {c.add("split_to_sequence", {c.in(0), c.opt(1)},
                {{"axis", c.i("axis", 0)}, {"keep_dims", c.flag("keepdims", true)}})};
}

Values ConcatFromSequence(Call& c) {
  return {c.add("concat_from_sequence", {c.in(0)},
                {{"axis", c.i("axis")}, {"new_axis", c.flag("new_axis", false)}})};
}

Values Optional(Call& c) {
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

Values OptionalHasElement(Call& c) { return {c.add("optional_has_element", {c.opt(0)})}; }

const Converter kSequenceTable[] = {
    {"ConcatFromSequence", ConcatFromSequence},
    {"Optional", Optional},
    {"OptionalGetElement", "optional_get_element"},
    {"OptionalHasElement", OptionalHasElement},
    {"SequenceAt", "sequence_at"},
    {"SequenceConstruct", "sequence_construct"},
    {"SequenceEmpty", SequenceEmpty},
    {"SequenceErase", SequenceErase},
    {"SequenceInsert", SequenceInsert},
    {"SequenceLength", "sequence_length"},
    {"SplitToSequence", SplitToSequence},
};

}  // namespace

std::span<const Converter> sequence_converters() { return kSequenceTable; }

}  // namespace anymps::onnx
