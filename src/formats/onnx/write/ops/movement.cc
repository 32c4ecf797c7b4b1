// SPDX-License-Identifier: Apache-2.0
// Ops that move elements, ops on shapes, reductions.
#include <numeric>

#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

ONNX_WRITE(reshape) {
  return {
      e.add("Reshape", {e.in(0), e.list(1, "shape")}, {{"allowzero", e.attrs().b("allow_zero")}})};
}

ONNX_WRITE(transpose) {
  Ints perm = e.attrs().ints("perm");
  for (int64_t& axis : perm)
    if (axis < 0) axis += static_cast<int64_t>(perm.size());
  return {e.add("Transpose", {e.in(0)}, perm.empty() ? OutAttrs{} : OutAttrs{{"perm", perm}})};
}

ONNX_WRITE(squeeze) {
  const bool all = !e.has(1) && e.attrs().ints("axes").empty();
  return {e.add("Squeeze", all ? Names{e.in(0)} : Names{e.in(0), e.list(1, "axes")})};
}
ONNX_WRITE(unsqueeze) { return {e.add("Unsqueeze", {e.in(0), e.list(1, "axes")})}; }
ONNX_WRITE(flatten) { return {e.add("Flatten", {e.in(0)}, {{"axis", e.attrs().i("axis")}})}; }

ONNX_WRITE(expand) {
  if (e.has(1)) return {e.add("Expand", {e.in(0), e.cast(e.in(1), DType::kI64)})};
  Ints shape = e.attrs().ints("shape");
  for (int64_t& extent : shape)
    if (extent == -1) extent = 1;  // keeps the input's
  return {e.add("Expand", {e.in(0), e.ints(shape)})};
}

ONNX_WRITE(tile) { return {e.add("Tile", {e.in(0), e.list(1, "repeats")})}; }

ONNX_WRITE(slice) {
  const bool no_starts = !e.has(1) && e.attrs().ints("starts").empty();
  if (no_starts) return {e.add("Identity", {e.in(0)})};
  const bool no_axes = !e.has(3) && e.attrs().ints("axes").empty(),
             no_steps = !e.has(4) && e.attrs().ints("steps").empty();
  return {e.add("Slice", {e.in(0), e.list(1, "starts"), e.list(2, "ends"),
                          no_axes ? std::string() : e.list(3, "axes"),
                          no_steps ? std::string() : e.list(4, "steps")})};
}

ONNX_WRITE(split) {
  const size_t count = e.node.outputs.size();
  OutAttrs attrs = {{"axis", e.attrs().i("axis")}};
  if (e.has(1) || !e.attrs().ints("sizes").empty())
    return e.add_all("Split", {e.in(0), e.list(1, "sizes")}, attrs, count);
  attrs.emplace_back("num_outputs", static_cast<int64_t>(count));
  return e.add_all("Split", {e.in(0)}, attrs, count);
}

ONNX_WRITE(concat) { return {e.add("Concat", e.all(), {{"axis", e.attrs().i("axis")}})}; }

ONNX_WRITE(stack) {
  int64_t axis = e.attrs().i("axis");
  if (axis < 0) axis += e.rank() + 1;
  Names wide;
  for (const std::string& x : e.all()) wide.push_back(e.add("Unsqueeze", {x, e.ints({axis})}));
  return {e.add("Concat", wide, {{"axis", axis}})};
}

ONNX_WRITE(pad) {
  std::string mode = e.attrs().s("mode");
  if (mode == "symmetric") e.refuse("ONNX has no symmetric padding");
  if (!e.has(1) && e.attrs().ints("pads").empty()) return {e.add("Identity", {e.in(0)})};
  std::string value;
  if (mode == "constant") {
    value = e.has(2) ? e.in(2) : e.number(e.dtype(), e.attrs().f("value"));
    if (e.has(2) && e.rank(2) > 0) value = e.add("Reshape", {value, e.ints({})});
  }
  return {e.add("Pad", {e.in(0), e.list(1, "pads"), value, e.in(3)}, {{"mode", mode}})};
}

ONNX_WRITE(reverse) {
  Ints axes = e.attrs().ints("axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(e.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.empty()) return {e.add("Identity", {e.in(0)})};
  const Ints last(axes.size(), -1), end(axes.size(), INT64_MIN), back(axes.size(), -1);
  return {e.add("Slice", {e.in(0), e.ints(last), e.ints(end), e.ints(axes), e.ints(back)})};
}

ONNX_WRITE(depth_to_space) {
  if (e.attrs().s("layout") != "channels_first") e.refuse("its layout is channels last");
  return {e.add("DepthToSpace", {e.in(0)},
                {{"blocksize", e.attrs().i("block")}, {"mode", e.attrs().s("mode")}})};
}
ONNX_WRITE(space_to_depth) {
  if (e.attrs().s("layout") != "channels_first" || e.attrs().s("mode") != "DCR")
    e.refuse("its layout or mode has no ONNX op");
  return {e.add("SpaceToDepth", {e.in(0)}, {{"blocksize", e.attrs().i("block")}})};
}

ONNX_WRITE(gather) {
  if (e.attrs().i("batch_dims") != 0) e.refuse("it gathers within batches");
  return {e.add("Gather", {e.in(0), e.in(1)}, {{"axis", e.attrs().i("axis")}})};
}
ONNX_WRITE(gather_along_axis) {
  return {e.add("GatherElements", {e.in(0), e.in(1)}, {{"axis", e.attrs().i("axis")}})};
}
ONNX_WRITE(gather_nd) {
  return {e.add("GatherND", {e.in(0), e.cast(e.in(1), DType::kI64)},
                {{"batch_dims", e.attrs().i("batch_dims")}})};
}

ONNX_WRITE(shape) {
  OutAttrs attrs = {{"start", e.attrs().i("start")}};
  if (e.attrs().i("end") != INT64_MAX) attrs.emplace_back("end", e.attrs().i("end"));
  return {e.add("Shape", {e.in(0)}, attrs)};
}

ONNX_WRITE(range) { return {e.add("Range", e.all())}; }

ONNX_WRITE(fill) {
  std::string value = e.has(1) ? e.in(1) : e.number(e.attrs().dtype("dtype"), e.attrs().f("value"));
  if (e.has(1)) e.attrs().dtype("dtype"), e.attrs().f("value");  // the input's win
  if (e.has(1) && e.rank(1) > 0) value = e.add("Reshape", {value, e.ints({})});
  return {e.add("Expand", {value, e.list(0, "shape")})};
}

ONNX_WRITE(one_hot) { return {e.add("OneHot", e.all(), {{"axis", e.attrs().i("axis")}})}; }

ONNX_WRITE(trilu) {
  const std::string k = e.has(1) ? e.cast(e.in(1), DType::kI64)
                                 : e.number(DType::kI64, static_cast<double>(e.attrs().i("k")));
  return {e.add("Trilu", {e.in(0), k}, {{"upper", e.attrs().b("upper")}})};
}

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

}  // namespace

}  // namespace anymps::onnx
