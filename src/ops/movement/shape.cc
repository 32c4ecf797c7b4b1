// SPDX-License-Identifier: Apache-2.0
// Ops that see the same elements under another shape, or tell a shape: reshape, flatten, transpose,
// squeeze, unsqueeze, expand, shape, size, depth_to_space, space_to_depth.
#include <algorithm>
#include <numeric>

#include "ops/shape_rules.h"

namespace anymps {

namespace {

void infer_reshape(InferContext& ctx) {
  if (ctx.has(1) && ctx.type(1).ranked)
    ctx.check(ctx.rank(1) == 1, "shape must have rank 1, it has rank {}", ctx.rank(1));
  const std::optional<Dims> target = ctx.ints(1, "shape");
  if (!target) return set_fresh_shape(ctx, 1);
  const bool ranked = ctx.type(0).ranked, allow_zero = ctx.attrs.b("allow_zero");
  Dims shape = *target, others;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is(-1)) {
      if (inferred) [[unlikely]]
        ctx.check(false, "shape {} has more than one -1", to_string(*target));
      inferred = i;
      if (!ranked) shape[i] = ctx.fresh(std::to_string(i));
      continue;
    }
    if (shape[i].is(0) && !allow_zero) {
      if (ranked)
        ctx.check(i < ctx.shape(0).size(), "shape {} copies axis {} of an input of shape {}",
                  to_string(*target), i, to_string(ctx.shape(0)));
      shape[i] = ranked ? ctx.shape(0)[i] : ctx.fresh(std::to_string(i));
    }
    if (shape[i].known() && shape[i].value() < 0) [[unlikely]]
      ctx.check(false, "shape {} has a negative extent", to_string(*target));
    others.push_back(shape[i]);
  }
  if (!ranked) return ctx.set(0, std::move(shape));
  const Dims& input = ctx.shape(0);
  if (inferred) {
    const Quotient rest = quotient(input, others, ctx.op.name.c_str());
    if (!rest.exact && all_known(input) && all_known(others)) [[unlikely]]
      ctx.check(false, "shape {} does not divide an input of shape {}", to_string(*target),
                to_string(input));
    shape[*inferred] = rest.value;
  } else if (all_known(input) && all_known(shape)) {
    const int64_t count = element_count(to_shape(input)), wanted = element_count(to_shape(shape));
    if (count != wanted) [[unlikely]]
      ctx.check(false, "an input of shape {} has {} elements, shape {} has {}", to_string(input),
                count, to_string(shape), wanted);
  }
  set_view(ctx, 0, std::move(shape));
}

bool view_reshape(ViewContext& ctx) {
  const auto strides = reshape_strides(ctx.input, ctx.shape);
  if (strides) ctx.strides = *strides;
  return strides.has_value();
}

std::vector<int64_t> permutation(const Attrs& attrs, int64_t rank) {
  const std::vector<int64_t>& given = attrs.ints("perm");
  if (!given.empty()) {
    if (std::ssize(given) != rank) [[unlikely]]
      require(false, "[transpose] perm [{}] has {} axes for an input of rank {}",
              fmt::join(given, ", "), given.size(), rank);
    return normalize_axes(given, rank, "transpose");
  }
  std::vector<int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

void infer_transpose(InferContext& ctx) {
  Dims shape;
  for (int64_t axis : permutation(ctx.attrs, ctx.rank(0))) shape.push_back(ctx.shape(0)[axis]);
  set_view(ctx, 0, std::move(shape));
}

bool view_transpose(ViewContext& ctx) {
  for (int64_t axis : permutation(ctx.attrs, ctx.input.rank()))
    ctx.strides.push_back(ctx.input.strides[axis]);
  return true;
}

void infer_squeeze(InferContext& ctx) {
  const Dims& input = ctx.shape(0);
  const auto axes = numbers(ctx.ints(1, "axes"));
  if (!axes) return ctx.set_unranked(0);
  std::vector<bool> drop(input.size(), false);
  if (axes->empty()) {
    if (!all_known(input)) return ctx.set_unranked(0);  // an unknown extent may turn out to be 1
    for (size_t i = 0; i < input.size(); ++i) drop[i] = input[i].is(1);
  }
  for (int64_t axis : normalize_axes(*axes, ctx.rank(0), "squeeze")) {
    const Dim& extent = input[axis];
    if (extent.known() && !extent.is(1)) [[unlikely]]
      ctx.check(false, "axis {} of {} has the extent {}, not 1", axis, to_string(input),
                extent.str());
    drop[axis] = true;
  }
  Dims shape;
  for (size_t i = 0; i < input.size(); ++i)
    if (!drop[i]) shape.push_back(input[i]);
  set_view(ctx, 0, std::move(shape));
}

bool view_squeeze(ViewContext& ctx) {
  const auto given = view_ints(ctx, 1, "axes");
  if (!given) return false;
  const auto axes = normalize_axes(*given, ctx.input.rank(), "squeeze");
  for (size_t i = 0; i < ctx.input.shape.size(); ++i) {
    const bool drop = axes.empty() ? ctx.input.shape[i] == 1
                                   : std::count(axes.begin(), axes.end(), static_cast<int64_t>(i));
    if (!drop) ctx.strides.push_back(ctx.input.strides[i]);
  }
  return true;
}

std::vector<int64_t> new_axes(const std::vector<int64_t>& given, int64_t rank) {
  auto axes = normalize_axes(given, rank + std::ssize(given), "unsqueeze");
  std::sort(axes.begin(), axes.end());
  return axes;
}

void infer_unsqueeze(InferContext& ctx) {
  Dims shape = ctx.shape(0);
  const auto axes = numbers(ctx.ints(1, "axes"));
  if (!axes) {  // the number of axes may be known, their places are not
    const ValueType& list = ctx.type(1);
    if (!list.ranked || list.shape.size() != 1 || !list.shape[0].known() ||
        list.shape[0].value() > ValueType::kMaxContent)
      return ctx.set_unranked(0);
    const size_t rank = shape.size() + static_cast<size_t>(list.shape[0].value());
    shape.clear();
    for (size_t i = 0; i < rank; ++i) shape.push_back(ctx.fresh(std::to_string(i)));
    return ctx.set(0, std::move(shape));
  }
  for (int64_t axis : new_axes(*axes, ctx.rank(0))) shape.insert(shape.begin() + axis, 1);
  set_view(ctx, 0, std::move(shape));
}

bool view_unsqueeze(ViewContext& ctx) {
  const auto axes = view_ints(ctx, 1, "axes");
  if (!axes) return false;
  ctx.strides = ctx.input.strides;
  for (int64_t axis : new_axes(*axes, ctx.input.rank())) ctx.strides.insert(axis, 1);
  return true;
}

void infer_flatten(InferContext& ctx) {
  const Dims& input = ctx.shape(0);
  const int64_t rank = ctx.rank(0);
  int64_t axis = ctx.attrs.i("axis");
  ctx.check(axis >= -rank && axis <= rank, "axis {} is out of range for rank {}", axis, rank);
  if (axis < 0) axis += rank;
  set_view(ctx, 0,
           {ordered_product(Dims(input.begin(), input.begin() + axis)),
            ordered_product(Dims(input.begin() + axis, input.end()))});
}

void infer_expand(InferContext& ctx) {
  std::optional<Dims> target = ctx.ints(1, "shape");
  if (!target) {
    // The wider of the two; only the length of the shape may be known.
    const ValueType& type = ctx.type(1);
    if (!type.ranked || type.shape.size() != 1 || !type.shape[0].known()) {
      ctx.set_unranked(0);
      return;
    }
    ctx.check(type.shape[0].value() <= ValueType::kMaxContent, "shape has {} extents",
              type.shape[0].value());
    const size_t rank = std::max(ctx.shape(0).size(), static_cast<size_t>(type.shape[0].value()));
    Dims shape;
    for (size_t i = 0; i < rank; ++i) shape.push_back(ctx.fresh(std::to_string(i)));
    return ctx.set(0, std::move(shape));
  }
  for (Dim& extent : *target) {
    if (extent.is(-1)) extent = 1;
    if (extent.known() && extent.value() < 0) [[unlikely]]
      ctx.check(false, "shape {} has a negative extent", to_string(*target));
  }
  set_view(ctx, 0, broadcast(ctx.shape(0), *target, "expand"));
}

bool view_expand(ViewContext& ctx) {
  ctx.strides = broadcast_strides(ctx.input, ctx.shape);
  return true;
}

// The part [start, end) of a list of `rank` axes, clamped.
std::pair<int64_t, int64_t> axis_range(const Attrs& attrs, int64_t rank) {
  auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t first = clamped(attrs.i("start"));
  return {first, std::max(first, clamped(attrs.i("end")))};
}

void infer_shape(InferContext& ctx) {
  const Dims& input = ctx.shape(0);
  const auto [first, last] = axis_range(ctx.attrs, ctx.rank(0));
  ctx.set(0, {last - first});
  ctx.set_content(0, Dims(input.begin() + first, input.begin() + last));
}

void infer_size(InferContext& ctx) {
  ctx.set(0, Dims{});
  if (ctx.type(0).ranked) ctx.set_content(0, {ordered_product(ctx.shape(0))});
}

struct Axes {
  size_t channel, height, width;
};

Axes image_axes(InferContext& ctx) {
  ctx.check(ctx.rank(0) == 4, "input must have rank 4, it has rank {}", ctx.rank(0));
  ctx.check(ctx.attrs.i("block") > 0, "block must be positive, it is {}", ctx.attrs.i("block"));
  ctx.check(ctx.attrs.i("block") <= 1 << 20, "block {} is too large", ctx.attrs.i("block"));
  return ctx.attrs.s("layout") == "channels_first" ? Axes{1, 2, 3} : Axes{3, 1, 2};
}

void infer_depth_to_space(InferContext& ctx) {
  const auto [c, h, w] = image_axes(ctx);
  const Dim block = ctx.attrs.i("block");
  Dims shape = ctx.shape(0);
  const Quotient channels = quotient({shape[c]}, {block, block}, "depth_to_space");
  if (!channels.exact && shape[c].known()) [[unlikely]]
    ctx.check(false, "{} channels do not divide by {} x {}", shape[c].str(), block.str(),
              block.str());
  shape[c] = channels.value;
  shape[h] = ordered_product({shape[h], block});
  shape[w] = ordered_product({shape[w], block});
  ctx.set(0, std::move(shape));
}

void infer_space_to_depth(InferContext& ctx) {
  const auto [c, h, w] = image_axes(ctx);
  const Dim block = ctx.attrs.i("block");
  Dims shape = ctx.shape(0);
  for (size_t axis : {h, w}) {
    const Quotient extent = quotient({shape[axis]}, {block}, "space_to_depth");
    if (!extent.exact && shape[axis].known()) [[unlikely]]
      ctx.check(false, "extent {} of axis {} does not divide by {}", shape[axis].str(), axis,
                block.str());
    shape[axis] = extent.value;
  }
  shape[c] = ordered_product({shape[c], block, block});
  ctx.set(0, std::move(shape));
}

OpWriter& depth_blocks(OpWriter& op) {
  return op.input("x", kEvery)
      .output("y")
      .required("block", AttrKind::kInt, "side of the square")
      .attr("mode", "DCR", {"DCR", "CRD"}, "order of the channels")
      .attr("layout", "channels_first", {"channels_first", "channels_last"})
      .facts(kMoves)
      .layout(LayoutRule::kLayout);
}

}  // namespace

OP(reshape)
    .doc(
        "The same elements in row-major order under another shape. An extent of -1 is inferred "
        "from the others; 0 copies the input's extent at that axis, unless allow_zero.")
    .formula("y.flat[i] = x.flat[i]")
    .mps("reshapeTensor:withShape:name:")
    .mps("reshapeTensor:withShapeTensor:name:")
    .input("x", kEvery)
    .ints("shape", "the new shape", "I", "the new shape; wins over the attribute")
    .output("y")
    .attr("allow_zero", false, "0 means an empty axis")
    .infer(infer_reshape)
    .view(view_reshape)
    .sample({"attribute", {{2, 3, 4}}, {{"shape", Ints{4, 6}}}})
    .sample({"infer", {{2, 3, 4}}, {{"shape", Ints{0, -1}}}})
    .sample({"split", {{2, 12}}, {{"shape", Ints{2, 3, 4}}}})
    .sample({"units", {{2, 1, 3}}, {{"shape", Ints{1, 2, 1, 1, 3}}}})
    .sample({"input", {{2, 3, 4}, {2}}, {}, {{1, {6, -1}}}})
    .sample({"to_scalar", {{1, 1}}, {}})
    .sample({"from_scalar", {{}}, {{"shape", Ints{1, -1}}}})
    .sample({"empty", {{0, 3}}, {{"shape", Ints{0, 5}}, {"allow_zero", true}}});

OP(transpose)
    .doc("Permutes the axes; without perm, reverses them.")
    .formula("y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]")
    .mps("transposeTensor:permutation:name:")
    .mps("transposeTensor:dimension:withDimension:name:")
    .input("x", kEvery)
    .output("y")
    .attr("perm", kNoInts, "axis i of the output is axis perm[i] of the input")
    .infer(infer_transpose)
    .view(view_transpose)
    .sample({"matrix", {{3, 5}}, {}})
    .sample({"heads", {{2, 5, 3, 4}}, {{"perm", Ints{0, 2, 1, 3}}}})
    .sample({"channels_last", {{2, 3, 4, 5}}, {{"perm", Ints{0, 2, 3, 1}}}})
    .sample({"negative", {{2, 3, 4}}, {{"perm", Ints{-1, 0, 1}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 3}}, {}});

OP(squeeze)
    .doc("Removes axes of extent 1: those given, or all.")
    .formula("y.flat[i] = x.flat[i]")
    .mps("squeezeTensor:name:")
    .mps("squeezeTensor:axis:name:")
    .mps("squeezeTensor:axes:name:")
    .mps("squeezeTensor:axesTensor:name:")
    .input("x", kEvery)
    .ints("axes", "axes to remove; empty: every axis of extent 1")
    .output("y")
    .infer(infer_squeeze)
    .view(view_squeeze)
    .sample({"all", {{1, 3, 1, 2}}, {}})
    .sample({"one", {{1, 3, 1, 2}}, {{"axes", Ints{-2}}}})
    .sample({"to_scalar", {{1, 1}}, {{"axes", Ints{0, 1}}}})
    .sample({"input", {{1, 3, 1}, {1}}, {}, {{1, {-1}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 1}}, {}});

OP(unsqueeze)
    .doc("Inserts axes of extent 1; axes are places in the output.")
    .formula("y.flat[i] = x.flat[i]")
    .mps("expandDimsOfTensor:axis:name:")
    .mps("expandDimsOfTensor:axes:name:")
    .mps("expandDimsOfTensor:axesTensor:name:")
    .input("x", kEvery)
    .ints("axes", "places of the new axes in the output")
    .output("y")
    .infer(infer_unsqueeze)
    .view(view_unsqueeze)
    .sample({"front", {{2, 3}}, {{"axes", Ints{0}}}})
    .sample({"both_ends", {{2, 3}}, {{"axes", Ints{-1, 0}}}})
    .sample({"input", {{2, 3}, {2}}, {}, {{1, {3, 1}}}})
    .sample({"scalar", {{}}, {{"axes", Ints{0, 1}}}})
    .sample({"empty", {{0, 2}}, {{"axes", Ints{1}}}});

OP(flatten)
    .doc("Joins the axes before `axis` into one and the axes from it on into another.")
    .formula("y.flat[i] = x.flat[i]")
    .mps("flatten2DTensor:axis:name:")
    .mps("flatten2DTensor:axisTensor:name:")
    .input("x", kEvery)
    .output("y")
    .attr("axis", 1, "first axis of the second group, in [-rank, rank]")
    .infer(infer_flatten)
    .view(view_reshape)
    .sample({"default", {{2, 3, 4}}, {}})
    .sample({"all_first", {{2, 3, 4}}, {{"axis", 3}}})
    .sample({"all_second", {{2, 3, 4}}, {{"axis", 0}}})
    .sample({"negative", {{2, 3, 4}}, {{"axis", -1}}})
    .sample({"scalar", {{}}, {{"axis", 0}}})
    .sample({"empty", {{0, 3, 4}}, {}});

OP(expand)
    .doc(
        "Broadcasts the input and `shape` against each other: axes of extent 1, on either side, "
        "take the other's extent. An extent of -1 keeps the input's.")
    .formula("y[i] = x[i broadcast to x's shape]")
    .mps("broadcastTensor:toShape:name:")
    .mps("broadcastTensor:toShapeTensor:name:")
    .input("x", kEvery)
    .ints("shape", "the shape to broadcast with", "I",
          "the shape to broadcast with; wins over the attribute")
    .output("y")
    .infer(infer_expand)
    .view(view_expand)
    .sample({"attribute", {{3, 1}}, {{"shape", Ints{2, 3, 4}}}})
    .sample({"two_way", {{3, 4}}, {{"shape", Ints{2, 1, 1}}}})
    .sample({"input", {{1, 3}, {2}}, {}, {{1, {2, 3}}}})
    .sample({"scalar", {{}}, {{"shape", Ints{2, 2}}}})
    .sample({"unchanged", {{2}}, {}})
    .sample({"empty", {{1, 3}}, {{"shape", Ints{0, 3}}}});

OP(shape)
    .doc("The input's shape as a vector, or the part [start, end) of it.")
    .formula("y = x.shape[start:end]")
    .mps("shapeOfTensor:name:")
    .input("x", kEvery)
    .output("y", "i64")
    .attr("start", 0, "first axis; negative counts from the end")
    .attr("end", std::numeric_limits<int64_t>::max(), "axis after the last; clamped to the rank")
    .facts(kShapeOnly)
    .reference_only("a few numbers, known before the run")
    .infer(infer_shape)
    .sample({"all", {{2, 3, 4}}, {}})
    .sample({"part", {{2, 3, 4}}, {{"start", 1}, {"end", -1}}})
    .sample({"none", {{2, 3, 4}}, {{"start", 3}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 2}}, {}});

OP(size)
    .doc("The number of the input's elements.")
    .formula("y = product(x.shape)")
    .onnx("Size")
    .input("x", kEvery)
    .output("y", "i64")
    .facts(kShapeOnly)
    .reference_only("one number, known before the run")
    .infer(infer_size)
    .sample({"matrix", {{2, 3}}, {}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 2}}, {}});

OP(depth_to_space)
    .doc(
        "Moves blocks of channels into space: block x block channels become a square of pixels. "
        "DCR takes the block's place from the outer part of the channel index, CRD (pixel "
        "shuffle) from its inner part.")
    .formula(
        "DCR: y[n, c, h*b + i, w*b + j] = x[n, (i*b + j)*C + c, h, w]; "
        "CRD: = x[n, c*b*b + i*b + j, h, w]")
    .mps("depthToSpace2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:")
    .mps(
        "depthToSpace2DTensor:widthAxisTensor:heightAxisTensor:depthAxisTensor:blockSize:"
        "usePixelShuffleOrder:name:")
    .with(depth_blocks)
    .infer(infer_depth_to_space)
    .sample({"dcr", {{2, 12, 2, 3}}, {{"block", 2}}})
    .sample({"crd", {{2, 12, 2, 3}}, {{"block", 2}, {"mode", "CRD"}}})
    .sample({"last", {{1, 2, 3, 8}}, {{"block", 2}, {"layout", "channels_last"}}})
    .sample({"last_crd",
             {{1, 2, 3, 8}},
             {{"block", 2}, {"mode", "CRD"}, {"layout", "channels_last"}}})
    .sample({"one", {{1, 3, 2, 2}}, {{"block", 1}}})
    .sample({"empty", {{0, 4, 2, 3}}, {{"block", 2}}});

OP(space_to_depth)
    .doc("Moves squares of pixels into channels: the inverse of depth_to_space.")
    .formula(
        "DCR: y[n, (i*b + j)*C + c, h, w] = x[n, c, h*b + i, w*b + j]; "
        "CRD: y[n, c*b*b + i*b + j, h, w]")
    .mps("spaceToDepth2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:")
    .mps(
        "spaceToDepth2DTensor:widthAxisTensor:heightAxisTensor:depthAxisTensor:blockSize:"
        "usePixelShuffleOrder:name:")
    .with(depth_blocks)
    .infer(infer_space_to_depth)
    .sample({"dcr", {{2, 3, 4, 6}}, {{"block", 2}}})
    .sample({"crd", {{2, 3, 4, 6}}, {{"block", 2}, {"mode", "CRD"}}})
    .sample({"last", {{1, 4, 6, 2}}, {{"block", 2}, {"layout", "channels_last"}}})
    .sample({"one", {{1, 3, 2, 2}}, {{"block", 1}}})
    .sample({"empty", {{1, 0, 4, 2}}, {{"block", 2}}});

}  // namespace anymps
