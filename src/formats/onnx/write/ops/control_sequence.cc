// SPDX-License-Identifier: Apache-2.0
// Lists and optionals.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

// A place in a list, as ONNX has it; absent where it is absent.
std::string place(Emit& e, size_t i) { return e.has(i) ? e.scalar(i) : std::string(); }

ONNX_WRITE(sequence_at) { return {e.add("SequenceAt", {e.in(0), place(e, 1)})}; }
ONNX_WRITE(sequence_insert) { return {e.add("SequenceInsert", {e.in(0), e.in(1), place(e, 2)})}; }
ONNX_WRITE(sequence_erase) { return {e.add("SequenceErase", {e.in(0), place(e, 1)})}; }
ONNX_WRITE(sequence_empty) {
  return {e.add("SequenceEmpty", {}, {{"dtype", e.attrs().dtype("dtype")}})};
}
ONNX_WRITE(split_to_sequence) {
  OutAttrs attrs = {{"axis", e.attrs().i("axis")}, {"keepdims", e.attrs().b("keep_dims")}};
  if (e.has(1)) attrs.pop_back();
  return {e.add("SplitToSequence", {e.in(0), e.in(1)}, attrs)};
}
ONNX_WRITE(concat_from_sequence) {
  return {e.add("ConcatFromSequence", {e.in(0)},
                {{"axis", e.attrs().i("axis")}, {"new_axis", e.attrs().b("new_axis")}})};
}

ONNX_WRITE(optional) {
  const bool sequence = e.attrs().b("sequence");
  const DType dtype = e.attrs().dtype("dtype");
  if (e.has(0)) return {e.add("Optional", {e.in(0)})};
  const ValueType type{
      dtype, false, {}, std::nullopt, sequence ? Container::kSequence : Container::kTensor};
  return {e.add("Optional", {}, {{"type", OutType{type_bytes(type, false)}}})};
}

}  // namespace

}  // namespace anymps::onnx
