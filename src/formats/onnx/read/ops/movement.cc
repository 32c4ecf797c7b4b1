// SPDX-License-Identifier: Apache-2.0
// Ops that move elements and ops on shapes. Where a list (axes, pads, a shape …) is known when the
// model is loaded it becomes an attribute; a list that is computed, as in Shape -> Gather -> Concat
// -> Reshape, stays an input, and inference follows it as far as it can.
#include <algorithm>

#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// axes: an attribute before opset 13, an input from then on, which may be computed.
Value* with_axes(Call& c, std::string_view op) {
  std::optional<Ints> axes = c.opset < 13 ? c.ints("axes") : std::nullopt;
  if (c.opset >= 13 && c.opt(1)) {
    axes = known_ints(*c.in(1));
    if (!axes) return c.add(op, {c.in(0), c.in(1)});
  }
  if (op == "unsqueeze") c.check(axes.has_value(), "the axes are missing");
  if (axes && axes->empty()) return c.in(0);
  return c.add(op, {c.in(0)}, {{"axes", axes.value_or(Ints{})}});
}

// An op that takes a list as its second input or as an attribute. The empty list is the attribute's
// way to say that there is none, so it stays an input.
Value* with_list(Call& c, std::string_view op, const char* name, NamedAttrs attrs = {}) {
  auto known = known_ints(*c.in(1));
  if (!known || known->empty()) return c.add(op, {c.in(0), c.in(1)}, attrs);
  attrs.emplace_back(name, *known);
  return c.add(op, {c.in(0)}, attrs);
}

ONNX_READ(Reshape) {
  if (c.opset < 5) {
    auto shape = c.ints("shape");
    c.check(shape.has_value(), "attribute 'shape' is missing");
    return {c.add("reshape", {c.in(0), c.graph.ints(*shape)})};
  }
  NamedAttrs attrs;
  if (c.flag("allowzero", false)) attrs.emplace_back("allow_zero", true);
  return {with_list(c, "reshape", "shape", attrs)};
}

ONNX_READ(Expand) { return {with_list(c, "expand", "shape")}; }
ONNX_READ(Tile) { return {with_list(c, "tile", "repeats")}; }

ONNX_READ(Transpose) {
  return {c.add("transpose", {c.in(0)}, {{"perm", c.ints("perm").value_or(Ints{})}})};
}

ONNX_READ(Flatten) { return {c.add("flatten", {c.in(0)}, {{"axis", c.i("axis", 1)}})}; }

ONNX_READ(Squeeze) { return {with_axes(c, "squeeze")}; }
ONNX_READ(Unsqueeze) { return {with_axes(c, "unsqueeze")}; }

ONNX_READ(Concat) {
  const int64_t axis = c.opset < 4 ? c.i("axis", 1) : c.i("axis");
  return {c.add("concat", c.all(), {{"axis", axis}})};
}

ONNX_READ(Split) {
  Value* x = c.in(0);
  const int64_t axis = c.i("axis", 0);
  const size_t count = c.output_count();
  c.check(count > 0, "has no outputs");
  std::optional<Ints> sizes;
  if (c.opset < 13) {
    sizes = c.ints("split");
  } else if (c.opt(1)) {
    sizes = known_ints(*c.in(1));
    if (!sizes) return c.add_all("split", {x, c.in(1)}, {{"axis", axis}}, count);
  }
  if (c.opset >= 18 && c.has("num_outputs"))
    c.check(c.i("num_outputs") == static_cast<int64_t>(count),
            "num_outputs is {}, but there are {} outputs", c.i("num_outputs"), count);
  const Dim extent = x->type.ranked ? x->shape()[c.normalize(axis, c.rank(x))] : Dim::symbol("?");
  if (!sizes && extent.known()) {
    // Equal parts, the last one smaller if need be.
    const int64_t parts = static_cast<int64_t>(count), part = (extent.value() + parts - 1) / parts;
    sizes.emplace(count, part);
    sizes->back() = extent.value() - part * (parts - 1);
    c.check(sizes->back() >= 0, "extent {} does not split into {} parts", extent.value(), parts);
  }
  if (sizes)
    c.check(sizes->size() == count, "{} sizes are given for {} outputs", sizes->size(), count);
  return c.add_all("split", {x}, {{"axis", axis}, {"sizes", sizes.value_or(Ints{})}}, count);
}

ONNX_READ(Slice) {
  if (c.opset < 10) {
    auto starts = c.ints("starts"), ends = c.ints("ends");
    c.check(starts && ends, "attributes 'starts' and 'ends' are needed");
    return {
        c.add("slice", {c.in(0)},
              {{"starts", *starts}, {"ends", *ends}, {"axes", c.ints("axes").value_or(Ints{})}})};
  }
  static const char* kLists[] = {"starts", "ends", "axes", "steps"};
  Values inputs = {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4)};
  NamedAttrs attrs;
  for (size_t i = 0; i < 4; ++i) {
    if (!inputs[i + 1]) continue;
    auto known = known_ints(*inputs[i + 1]);
    if (!known) return {c.add("slice", inputs)};
    if (known->empty()) return {c.in(0)};
    attrs.emplace_back(kLists[i], *known);
  }
  return {c.add("slice", {c.in(0)}, attrs)};
}

// From opset 18 on, pads may be given for some axes only.
Ints pads_of_all_axes(Call& c, const Ints& pads, const Ints& axes, int64_t rank) {
  c.check(pads.size() == 2 * axes.size(), "{} pads are given for {} axes", pads.size(),
          axes.size());
  Ints all(2 * rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = c.normalize(axes[i], rank);
    all[axis] = pads[i];
    all[axis + rank] = pads[i + axes.size()];
  }
  return all;
}

ONNX_READ(Pad) {
  Value* x = c.in(0);
  const std::string mode = c.s("mode", "constant");
  if (c.opset < 11) {
    auto pads = c.ints(c.opset < 2 ? "paddings" : "pads");
    c.check(pads.has_value(), "the pads are missing");
    return {c.add("pad", {x}, {{"pads", *pads}, {"mode", mode}, {"value", c.f("value", 0.0)}})};
  }
  Value *value = c.opt(2), *axes = c.opset >= 18 ? c.opt(3) : nullptr;
  // A scalar in the form of a vector is common.
  if (value && !value->shape().empty()) value = c.add("reshape", {value, c.graph.ints({})});
  auto pads = known_ints(*c.in(1));
  const auto places = axes ? known_ints(*axes) : std::nullopt;
  if (!pads || (axes && !places)) {
    if (axes) axes = c.cast(axes, c.in(1)->dtype());
    return {c.add("pad", {x, c.in(1), value, axes}, {{"mode", mode}})};
  }
  if (axes) *pads = pads_of_all_axes(c, *pads, *places, c.rank(x));
  return {c.add("pad", {x, nullptr, value}, {{"pads", *pads}, {"mode", mode}})};
}

ONNX_READ(Gather) { return {c.add("gather", {c.in(0), c.in(1)}, {{"axis", c.i("axis", 0)}})}; }

ONNX_READ(GatherElements) {
  return {c.add("gather_along_axis", {c.in(0), c.in(1)}, {{"axis", c.i("axis", 0)}})};
}

ONNX_READ(GatherND) {
  return {c.add("gather_nd", {c.in(0), c.in(1)}, {{"batch_dims", c.i("batch_dims", 0)}})};
}

ONNX_READ(Shape) {
  NamedAttrs attrs = {{"start", c.i("start", 0)}};
  if (c.has("end")) attrs.emplace_back("end", c.i("end"));
  return {c.add("shape", {c.in(0)}, attrs)};
}

ONNX_READ(DepthToSpace) {
  return {c.add("depth_to_space", {c.in(0)},
                {{"block", c.i("blocksize")}, {"mode", c.s("mode", "DCR")}})};
}

ONNX_READ(SpaceToDepth) {
  return {c.add("space_to_depth", {c.in(0)},
                {{"block", c.i("blocksize")}, {"mode", c.s("mode", "DCR")}})};
}

ONNX_READ(Trilu) {
  const bool upper = c.flag("upper", true);
  Value* k = c.opt(1);
  const auto known = k ? known_ints(*k) : Ints{0};
  if (!known) return {c.add("trilu", {c.in(0), k}, {{"upper", upper}})};
  c.check(known->size() == 1, "k has {} elements, must have 1", known->size());
  return {c.add("trilu", {c.in(0)}, {{"k", (*known)[0]}, {"upper", upper}})};
}
ONNX_READ_ALSO(kMicrosoft, Trilu, kOnnx, Trilu);

std::string mode_of(Call& c) {
  std::string reduction = c.s("reduction", "none");
  if (reduction == "none") return "set";
  c.check(reduction == "add" || reduction == "mul" || reduction == "min" || reduction == "max",
          "reduction '{}' is not none, add, mul, min or max", reduction);
  return reduction;
}

ONNX_READ(ScatterND) {
  return {c.add("scatter_nd", {c.in(2), c.in(1), c.in(0)}, {{"mode", mode_of(c)}})};
}

ONNX_READ(ScatterElements) {
  return {c.add("scatter_along_axis", {c.in(2), c.in(1), c.in(0)},
                {{"axis", c.i("axis", 0)}, {"mode", mode_of(c)}})};
}
ONNX_READ_ALSO(kOnnx, Scatter, kOnnx, ScatterElements);

// Writes a run of steps into a cache, from where each batch's index says on.
ONNX_READ(TensorScatter) {
  Value *cache = c.in(0), *update = c.in(1), *first = c.opt(2);
  const int64_t rank = c.rank(cache), axis = c.axis("axis", -2, rank);
  const std::string mode = c.s("mode", "linear");
  c.check(mode == "linear" || mode == "circular", "mode '{}' is not linear or circular", mode);
  c.check(axis > 0 && c.rank(update) == rank, "axis {} of rank {} cannot be written to", axis,
          rank);
  auto extent = [&](Value* x) {
    return c.add("reshape",
                 {c.add("shape", {x}, {{"start", axis}, {"end", axis + 1}}), c.graph.ints({})});
  };
  auto number = [&](int64_t n) { return c.graph.scalar(DType::kI64, static_cast<double>(n)); };
  Value* places = c.add("range", {number(0), extent(update), number(1)});
  Ints ones(rank, 1);
  Ints along = ones;
  along[axis] = -1;
  places = c.add("reshape", {places}, {{"shape", along}});
  if (first) {
    Ints batch = ones;
    batch[0] = -1;
    places =
        c.add("add", {places, c.add("reshape", {c.cast(first, DType::kI64)}, {{"shape", batch}})});
  }
  if (mode == "circular") places = c.add("floor_mod", {places, extent(cache)});
  places = c.add("expand", {places, c.add("shape", {update})});
  return {c.add("scatter_along_axis", {update, places, cache}, {{"axis", axis}})};
}

ONNX_READ(EyeLike) {
  Value* x = c.in(0);
  const DType dtype = c.dtype("dtype", x->dtype());
  return {c.add("eye_like", {x}, {{"dtype", dtype}, {"k", c.i("k", 0)}})};
}

ONNX_READ(ReverseSequence) {
  return {c.add("reverse_sequence", {c.in(0), c.in(1)},
                {{"batch_axis", c.i("batch_axis", 1)}, {"time_axis", c.i("time_axis", 0)}})};
}

ONNX_READ(Col2Im) {
  NamedAttrs attrs;
  for (const char* name : {"strides", "dilations", "pads"})
    if (auto list = c.ints(name)) attrs.emplace_back(name, *list);
  return {c.add("col2im", {c.in(0), c.in(1), c.in(2)}, attrs)};
}

}  // namespace

}  // namespace anymps::onnx
