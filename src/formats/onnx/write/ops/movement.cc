// SPDX-License-Identifier: Apache-2.0
// Ops that move elements and ops on shapes.
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
    if (axis < 0) axis += std::ssize(perm);
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
    axes.resize(e.rank());
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

ONNX_WRITE(trilu) {
  const std::string k = e.has(1) ? e.cast(e.in(1), DType::kI64)
                                 : e.number(DType::kI64, static_cast<double>(e.attrs().i("k")));
  return {e.add("Trilu", {e.in(0), k}, {{"upper", e.attrs().b("upper")}})};
}

std::string reduction_of(Emit& e) {
  const std::string& mode = e.attrs().s("mode");
  if (mode == "sub" || mode == "div" || mode == "mean")
    e.refuse("ONNX does not scatter with {}", mode);
  if (!e.attrs().b("include_self")) e.refuse("what is there does not count");
  return mode == "set" ? "none" : mode;
}

// The tensor that is written to, which is zeros unless it is given.
std::string target(Emit& e) {
  if (e.has(2)) return e.in(2);
  return e.add("Expand", {e.number(e.dtype(), 0), e.ints(e.attrs().ints("shape"))});
}

ONNX_WRITE(scatter_nd) {
  if (e.attrs().i("batch_dims") != 0) e.refuse("it scatters within batches");
  if (e.has(2)) e.attrs().ints("shape");
  return {e.add("ScatterND", {target(e), e.cast(e.in(1), DType::kI64), e.in(0)},
                {{"reduction", reduction_of(e)}})};
}

ONNX_WRITE(scatter_along_axis) {
  if (e.has(3)) e.refuse("its axis is computed");
  if (e.has(2)) e.attrs().ints("shape");
  return {e.add("ScatterElements", {target(e), e.in(1), e.in(0)},
                {{"axis", e.attrs().i("axis")}, {"reduction", reduction_of(e)}})};
}

ONNX_WRITE(eye_like) {
  return {
      e.add("EyeLike", {e.in(0)}, {{"dtype", e.attrs().dtype("dtype")}, {"k", e.attrs().i("k")}})};
}

ONNX_WRITE(reverse_sequence) {
  return {
      e.add("ReverseSequence", {e.in(0), e.cast(e.in(1), DType::kI64)},
            {{"time_axis", e.attrs().i("time_axis")}, {"batch_axis", e.attrs().i("batch_axis")}})};
}

}  // namespace

}  // namespace anymps::onnx
