// SPDX-License-Identifier: Apache-2.0
// Strings.
#include <cctype>

#include "base/string_store.h"
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

ONNX_WRITE(string_split) {
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

ONNX_WRITE(string_normalizer) {
  std::string change = e.attrs().s("case_change");
  for (char& c : change) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  OutAttrs attrs = {{"case_change_action", change},
                    {"is_case_sensitive", e.attrs().b("case_sensitive")}};
  if (!e.attrs().s("locale").empty()) attrs.emplace_back("locale", e.attrs().s("locale"));
  if (e.has(1)) attrs.emplace_back("stopwords", texts(e, 1));
  return {e.add("StringNormalizer", {e.in(0)}, attrs)};
}

ONNX_WRITE(regex_full_match) {
  return {e.add("RegexFullMatch", {e.in(0)}, {{"pattern", e.attrs().s("pattern")}})};
}

}  // namespace

}  // namespace anymps::onnx
