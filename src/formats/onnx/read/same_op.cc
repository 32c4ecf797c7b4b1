// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/same_op.h"

#include <numeric>

namespace anymps::onnx {

namespace {

// An attribute that both have, as the file gives it; what it leaves out has the record's default.
void read_attr(Call& c, const AttrSpec& spec, NamedAttrs& attrs) {
  const char* name = spec.name.c_str();
  c.check(c.has(name) || !spec.required, "attribute '{}' is missing", name);
  if (!c.has(name)) return;
  switch (spec.kind) {
    case AttrKind::kInt:
      attrs.emplace_back(spec.name, c.i(name));
      break;
    case AttrKind::kBool:
      attrs.emplace_back(spec.name, c.i(name) != 0);
      break;
    case AttrKind::kFloat:
      attrs.emplace_back(spec.name, c.f(name));
      break;
    case AttrKind::kString:
      attrs.emplace_back(spec.name, c.s(name));
      break;
    default:
      fail(Code::kInternal, "[onnx] attribute '{}' of {} needs a converter", name, c.node.op_type);
  }
}

}  // namespace

Values read_same(Call& c, const Op& op) {
  Values inputs = c.all();
  if (inputs.size() == 2 && op.is(kElementwise)) inputs[1] = aligned(c, inputs[0], inputs[1]);
  NamedAttrs attrs;
  for (const std::string& name : op.onnx_attrs) read_attr(c, op.attrs[op.attr_index(name)], attrs);
  return {c.add(op.name, inputs, attrs)};
}

Value* aligned(Call& c, Value* a, Value* b) {
  if (c.opset >= 7 || !c.flag("broadcast", false)) return b;
  if (!c.has("axis")) return b;
  const int64_t after = c.rank(a) - c.axis("axis", std::nullopt, c.rank(a)) - c.rank(b);
  c.check(after >= 0, "axis {} leaves no room for the second input", c.i("axis"));
  if (after == 0) return b;
  std::vector<int64_t> axes(after);
  std::iota(axes.begin(), axes.end(), c.rank(b));
  return c.add("unsqueeze", {b}, {{"axes", axes}});
}

}  // namespace anymps::onnx
