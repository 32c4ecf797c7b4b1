// SPDX-License-Identifier: Apache-2.0
// Lists, optionals and strings.
#include "base/string_store.h"
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

// A place in a list, as ONNX has it; absent where it is absent.
std::string place(Emit& e, size_t i) { return e.has(i) ? e.scalar(i) : std::string(); }

Names sequence_at(Emit& e) { return {e.add("SequenceAt", {e.in(0), place(e, 1)})}; }
Names sequence_insert(Emit& e) {
  return {e.add("SequenceInsert", {e.in(0), e.in(1), place(e, 2)})};
}
Names sequence_erase(Emit& e) { return {e.add("SequenceErase", {e.in(0), place(e, 1)})}; }
Names sequence_empty(Emit& e) {
  return {e.add("SequenceEmpty", {}, {{"dtype", e.attrs().dtype("dtype")}})};
}
Names split_to_sequence(Emit& e) {
  OutAttrs attrs = {{"axis", e.attrs().i("axis")}, {"keepdims", e.attrs().b("keep_dims")}};
  if (e.has(1)) attrs.pop_back();
  return {e.add("SplitToSequence", {e.in(0), e.in(1)}, attrs)};
}
Names concat_from_sequence(Emit& e) {
  return {e.add("ConcatFromSequence", {e.in(0)},
                {{"axis", e.attrs().i("axis")}, {"new_axis", e.attrs().b("new_axis")}})};
}

Names optional(Emit& e) {
  const bool sequence = e.attrs().b("sequence");
  const DType dtype = e.attrs().dtype("dtype");
  if (e.has(0)) return {e.add("Optional", {e.in(0)})};
  const ValueType type{
      dtype, false, {}, std::nullopt, sequence ? Container::kSequence : Container::kTensor};
  return {e.add("Optional", {}, {{"type", OutType{type_bytes(type, false)}}})};
}

Names string_split(Emit& e) {
  OutAttrs attrs;
  if (!e.attrs().s("delimiter").empty()) attrs.emplace_back("delimiter", e.attrs().s("delimiter"));
  if (e.attrs().i("max_split") >= 0) attrs.emplace_back("maxsplit", e.attrs().i("max_split"));
  return e.add_all("StringSplit", {e.in(0)}, attrs, 2);
}

// The texts of a constant input, for an attribute.
Names texts(Emit& e, size_t i) {
  e.in(i);
  const ConstantPtr& constant = e.value(i).constant;
  if (!constant) e.refuse("input {} is computed, ONNX has it as an attribute", i);
  const auto bytes = constant->data();
  Names list;
  for (int64_t k = 0; k < constant->desc().count(); ++k)
    list.push_back(text_of(reinterpret_cast<const Text*>(bytes.get())[k]));
  return list;
}

Names string_normalizer(Emit& e) {
  std::string change = e.attrs().s("case_change");
  for (char& c : change) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  OutAttrs attrs = {{"case_change_action", change},
                    {"is_case_sensitive", e.attrs().b("case_sensitive")}};
  if (!e.attrs().s("locale").empty()) attrs.emplace_back("locale", e.attrs().s("locale"));
  if (e.has(1)) attrs.emplace_back("stopwords", texts(e, 1));
  return {e.add("StringNormalizer", {e.in(0)}, attrs)};
}

Names regex_full_match(Emit& e) {
  return {e.add("RegexFullMatch", {e.in(0)}, {{"pattern", e.attrs().s("pattern")}})};
}

const Writer kListsTable[] = {
    {"concat_from_sequence", concat_from_sequence},
    {"container_identity", "Identity"},
    {"optional", optional},
    {"optional_get_element", "OptionalGetElement"},
    {"optional_has_element", "OptionalHasElement"},
    {"regex_full_match", regex_full_match},
    {"sequence_at", sequence_at},
    {"sequence_construct", "SequenceConstruct"},
    {"sequence_empty", sequence_empty},
    {"sequence_erase", sequence_erase},
    {"sequence_insert", sequence_insert},
    {"sequence_length", "SequenceLength"},
    {"split_to_sequence", split_to_sequence},
    {"string_concat", "StringConcat"},
    {"string_normalizer", string_normalizer},
    {"string_split", string_split},
};

}  // namespace

std::span<const Writer> list_writers() { return kListsTable; }

}  // namespace anymps::onnx
