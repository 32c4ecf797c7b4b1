// SPDX-License-Identifier: Apache-2.0
// Reductions. Axes moved from an attribute to an input: in opset 13 for ReduceSum, in 18 for the
// rest.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

Values reduce(Call& c, std::string_view op, int64_t axes_are_input = 18) {
  std::optional<std::vector<int64_t>> axes;
  Value* list = c.opset < axes_are_input ? nullptr : c.opt(1);
  if (c.opset < axes_are_input)
    axes = c.ints("axes");
  else if (list)
    axes = known_ints(list);
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

}  // namespace

}  // namespace anymps::onnx
