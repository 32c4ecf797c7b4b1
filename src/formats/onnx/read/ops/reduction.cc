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

Values ReduceL1(Call& c) { return reduce(c, "reduce_l1"); }
Values ReduceL2(Call& c) { return reduce(c, "reduce_l2"); }
Values ReduceLogSum(Call& c) { return reduce(c, "reduce_log_sum"); }
Values ReduceLogSumExp(Call& c) { return reduce(c, "reduce_log_sum_exp"); }
Values ReduceMax(Call& c) {
  return reduce(c, c.in(0)->dtype() == DType::kBool ? "reduce_or" : "reduce_max");
}
Values ReduceMean(Call& c) { return reduce(c, "reduce_mean"); }
Values ReduceMin(Call& c) {
  return reduce(c, c.in(0)->dtype() == DType::kBool ? "reduce_and" : "reduce_min");
}
Values ReduceProd(Call& c) { return reduce(c, "reduce_prod"); }
Values ReduceSum(Call& c) { return reduce(c, "reduce_sum", 13); }
Values ReduceSumSquare(Call& c) { return reduce(c, "reduce_sum_square"); }

Values arg(Call& c, std::string_view op) {
  return {c.add(op, {c.in(0)},
                {{"axis", c.i("axis", 0)},
                 {"keep_dims", c.flag("keepdims", true)},
                 {"select_last", c.flag("select_last_index", false)}})};
}

Values ArgMax(Call& c) { return arg(c, "arg_max"); }
Values ArgMin(Call& c) { return arg(c, "arg_min"); }

const Converter kReductionTable[] = {
    {"ArgMax", ArgMax},
    {"ArgMin", ArgMin},
    {"ReduceL1", ReduceL1},
    {"ReduceL2", ReduceL2},
    {"ReduceLogSum", ReduceLogSum},
    {"ReduceLogSumExp", ReduceLogSumExp},
    {"ReduceMax", ReduceMax},
    {"ReduceMean", ReduceMean},
    {"ReduceMin", ReduceMin},
    {"ReduceProd", ReduceProd},
    {"ReduceSum", ReduceSum},
    {"ReduceSumSquare", ReduceSumSquare},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kReductionTable; }

}  // namespace anymps::onnx
