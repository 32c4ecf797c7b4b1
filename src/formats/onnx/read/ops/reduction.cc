// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums, order, and ops whose result is as long as the data say.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// Axes moved from an attribute to an input: in opset 13 for ReduceSum, in 18 for the rest.
Values reduce(Call& c, std::string_view op, int64_t axes_are_input = 18) {
  std::optional<std::vector<int64_t>> axes;
  Value* list = c.opset < axes_are_input ? nullptr : c.opt(1);
  if (c.opset < axes_are_input)
    axes = c.ints("axes");
  else if (list)
    axes = known_ints(*list);
  if (list && list->type.ranked && list->shape().size() == 1 && list->shape()[0].is(0))
    axes.emplace();
  const bool noop = c.opset >= axes_are_input && c.flag("noop_with_empty_axes", false);
  NamedAttrs attrs = {{"keep_dims", c.flag("keepdims", true)},
                      {"empty_axes", noop ? "none" : "all"}};
  if (list && !axes) return {c.add(op, {c.in(0), list}, attrs)};
  if (axes) attrs.emplace_back("axes", *axes);
  return {c.add(op, {c.in(0)}, attrs)};
}

ONNX_READ(ReduceL1) { return reduce(c, "reduce_l1"); }
ONNX_READ(ReduceL2) { return reduce(c, "reduce_l2"); }
ONNX_READ(ReduceLogSum) { return reduce(c, "reduce_log_sum"); }
ONNX_READ(ReduceLogSumExp) { return reduce(c, "reduce_log_sum_exp"); }
ONNX_READ(ReduceMax) {
  return reduce(c, c.in(0)->dtype() == DType::kBool ? "reduce_or" : "reduce_max");
}
ONNX_READ(ReduceMean) { return reduce(c, "reduce_mean"); }
ONNX_READ(ReduceMin) {
  return reduce(c, c.in(0)->dtype() == DType::kBool ? "reduce_and" : "reduce_min");
}
ONNX_READ(ReduceProd) { return reduce(c, "reduce_prod"); }
ONNX_READ(ReduceSum) { return reduce(c, "reduce_sum", 13); }
ONNX_READ(ReduceSumSquare) { return reduce(c, "reduce_sum_square"); }

Values arg(Call& c, std::string_view op) {
  return {c.add(op, {c.in(0)},
                {{"axis", c.i("axis", 0)},
                 {"keep_dims", c.flag("keepdims", true)},
                 {"select_last", c.flag("select_last_index", false)}})};
}

ONNX_READ(ArgMax) { return arg(c, "arg_max"); }
ONNX_READ(ArgMin) { return arg(c, "arg_min"); }

// The single integer of input i as the attribute `name`; or null is replaced by the input.
Value* as_attribute(Call& c, size_t i, const char* name, NamedAttrs& attrs) {
  Value* value = c.in(i);
  const auto known = known_ints(*value);
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

// An axis that may be left out, as a list of one or none.
Ints axis_list(Call& c) { return c.has("axis") ? Ints{c.i("axis")} : Ints{}; }

ONNX_READ(NonZero) { return {c.add("nonzero", {c.in(0)})}; }

ONNX_READ(Unique) {
  return c.add_all("unique", {c.in(0)},
                   {{"sorted", c.flag("sorted", true)}, {"axes", axis_list(c)}}, 4);
}

ONNX_READ(Compress) { return {c.add("compress", {c.in(0), c.in(1)}, {{"axes", axis_list(c)}})}; }

}  // namespace

}  // namespace anymps::onnx
