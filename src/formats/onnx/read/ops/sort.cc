// SPDX-License-Identifier: Apache-2.0
// Order and running sums along an axis. What is a constant becomes an attribute; what is computed
// stays an input.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

// The single integer of input i as the attribute `name`; or null is replaced by the input.
Value* as_attribute(Call& c, size_t i, const char* name, NamedAttrs& attrs) {
  Value* value = c.in(i);
  const auto known = known_ints(value);
  if (!known) return value;
  c.check(known->size() == 1, "input {} has {} elements, must have 1", i, known->size());
  attrs.emplace_back(name, (*known)[0]);
  return nullptr;
}

ONNX_READ(TopK) {
  NamedAttrs attrs = {{"axis", c.i("axis", -1)}};
  Value* k = nullptr;
  if (c.opset < 10)
    attrs.emplace_back("k", c.i("k"));
  else
    k = as_attribute(c, 1, "k", attrs);
  if (c.opset >= 11) {
    attrs.emplace_back("largest", c.flag("largest", true));
    c.ignore({"sorted"});  // any order may be given when it is not asked for
  }
  return c.add_all("top_k", {c.in(0), k}, attrs, 2);
}

Values cumulative(Call& c, std::string_view op) {
  NamedAttrs attrs = {{"exclusive", c.flag("exclusive", false)},
                      {"reverse", c.flag("reverse", false)}};
  Value* axis = as_attribute(c, 1, "axis", attrs);
  return {c.add(op, {c.in(0), axis}, attrs)};
}
ONNX_READ(CumSum) { return cumulative(c, "cumsum"); }
ONNX_READ(CumProd) { return cumulative(c, "cumprod"); }

}  // namespace

}  // namespace anymps::onnx
