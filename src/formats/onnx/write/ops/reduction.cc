// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums, order, and ops whose result is as long as the data say.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

ONNX_WRITE(cumsum) {
  const std::string axis =
      e.has(1) ? e.in(1) : e.number(DType::kI64, static_cast<double>(e.attrs().i("axis")));
  return {e.add("CumSum", {e.in(0), axis},
                {{"exclusive", e.attrs().b("exclusive")}, {"reverse", e.attrs().b("reverse")}})};
}

Names reduce(Emit& e, const char* op) {
  if (e.node.op->attr_index("propagate_nan") >= 0 && !e.attrs().b("propagate_nan"))
    e.refuse("it passes over NaN");
  const bool none = e.attrs().s("empty_axes") == "none";
  const bool absent = !e.has(1) && e.attrs().ints("axes").empty();
  return {e.add(op, absent ? Names{e.in(0)} : Names{e.in(0), e.list(1, "axes")},
                {{"keepdims", e.attrs().b("keep_dims")}, {"noop_with_empty_axes", none}})};
}

ONNX_WRITE(reduce_and) { return reduce(e, "ReduceMin"); }

ONNX_WRITE(reduce_l1) { return reduce(e, "ReduceL1"); }

ONNX_WRITE(reduce_l2) { return reduce(e, "ReduceL2"); }

ONNX_WRITE(reduce_log_sum) { return reduce(e, "ReduceLogSum"); }

ONNX_WRITE(reduce_log_sum_exp) { return reduce(e, "ReduceLogSumExp"); }

ONNX_WRITE(reduce_max) { return reduce(e, "ReduceMax"); }

ONNX_WRITE(reduce_mean) { return reduce(e, "ReduceMean"); }

ONNX_WRITE(reduce_min) { return reduce(e, "ReduceMin"); }

ONNX_WRITE(reduce_or) { return reduce(e, "ReduceMax"); }

ONNX_WRITE(reduce_prod) { return reduce(e, "ReduceProd"); }

ONNX_WRITE(reduce_sum) { return reduce(e, "ReduceSum"); }

ONNX_WRITE(reduce_sum_square) { return reduce(e, "ReduceSumSquare"); }

Names arg(Emit& e, const char* op) {
  return {e.add(op, {e.in(0)},
                {{"axis", e.attrs().i("axis")},
                 {"keepdims", e.attrs().b("keep_dims")},
                 {"select_last_index", e.attrs().b("select_last")}})};
}

ONNX_WRITE(arg_max) { return arg(e, "ArgMax"); }

ONNX_WRITE(arg_min) { return arg(e, "ArgMin"); }

ONNX_WRITE(top_k) {
  if (e.has(2)) e.refuse("its axis is computed");
  const std::string k = e.has(1) ? e.add("Reshape", {e.cast(e.in(1), DType::kI64), e.ints({1})})
                                 : e.ints({e.attrs().i("k")});
  return e.add_all("TopK", {e.in(0), k},
                   {{"axis", e.attrs().i("axis")}, {"largest", e.attrs().b("largest")}}, 2);
}

ONNX_WRITE(nonzero) {
  const std::string places = e.add("NonZero", {e.in(0)});
  return {e.attrs().b("axes_first") ? places : e.transpose(places, {1, 0})};
}

ONNX_WRITE(compress) {
  const Ints& axes = e.attrs().ints("axes");
  if (axes.size() > 1) e.refuse("it compresses {} axes", axes.size());
  return {e.add("Compress", e.all(), axes.empty() ? OutAttrs{} : OutAttrs{{"axis", axes[0]}})};
}

}  // namespace

}  // namespace anymps::onnx
