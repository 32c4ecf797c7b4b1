// SPDX-License-Identifier: Apache-2.0
// Ops that take a part of each axis, or move and border it: slice, split, reverse, pad, trilu.
#include <algorithm>

#include "ops/shape_rules.h"

namespace anymps {

namespace {

constexpr int64_t kFar = INT32_MAX;  // exporters write INT32_MAX or INT64_MAX for "to the end"

// The length of a slice along an axis whose extent, start or end is a symbol. Symbols are taken to
// be at least 1 and inside the axis; numbers are checked when they are known.
Dim symbolic_length(const Dim& extent, const Dim& start, const Dim& end, int64_t step) {
  const bool forward = step > 0;
  auto place = [&](const Dim& at, bool is_end) -> Dim {
    if (!at.known()) return is_end && forward && !(at == extent) ? min(at, extent) : at;
    const int64_t value = at.value();
    if (value >= kFar) return forward ? extent : extent - 1;
    if (value <= -kFar) return forward ? 0 : -1;
    if (value < 0) return extent + at;
    if (forward && is_end) return value <= 1 ? at : min(at, extent);
    return at;
  };
  const Dim first = place(start, false), last = place(end, true);
  const Dim length = forward ? last - first : first - last;
  // extent - (extent - k), which the text of an expression does not show
  if (forward && last == extent && start.known() && start.value() < 0 && start.value() > -kFar)
    return ceil_div(Dim(-start.value()), step);
  if (!forward && first == extent - 1 && end.known() && end.value() <= -kFar)
    return ceil_div(extent, -step);
  if (length.known() && length.value() < 0) return 0;  // the end lies before the start
  return ceil_div(length, forward ? step : -step);
}

void infer_slice(InferContext& ctx) {
  const Dims& input = ctx.shape(0);
  const auto starts = ctx.ints(1, "starts"), ends = ctx.ints(2, "ends");
  const auto axes = numbers(ctx.ints(3, "axes")), steps = numbers(ctx.ints(4, "steps"));
  if (!axes) {  // any axis may become shorter
    Dims shape;
    for (size_t i = 0; i < input.size(); ++i) shape.push_back(ctx.fresh(std::to_string(i)));
    return ctx.set(0, std::move(shape));
  }
  std::vector<int64_t> at = normalize_axes(*axes, ctx.rank(0), "slice");
  size_t count = starts ? starts->size() : 0;
  if (!starts) {
    count = at.size();
    const ValueType& type = ctx.type(1);
    if (at.empty() && type.ranked && type.shape.size() == 1)
      count = type.shape[0].known() ? static_cast<size_t>(type.shape[0].value()) : input.size();
  }
  ctx.check(count <= input.size(), "{} starts for an input of rank {}", count, input.size());
  if (at.empty())
    for (size_t i = 0; i < count; ++i) at.push_back(static_cast<int64_t>(i));
  ctx.check(at.size() == count && (!ends || ends->size() == count) &&
                (!steps || steps->empty() || steps->size() == count),
            "{} starts, {} ends, {} axes and {} steps do not go together", count,
            ends ? ends->size() : count, at.size(), steps ? steps->size() : count);
  Dims shape = input;
  for (size_t i = 0; i < count; ++i) {
    Dim& extent = shape[at[i]];
    if (!starts || !ends || !steps) {
      extent = ctx.fresh(std::to_string(at[i]));
      continue;
    }
    const Dim &start = (*starts)[i], &end = (*ends)[i];
    const int64_t step = steps->empty() ? 1 : (*steps)[i];
    ctx.check(step != 0, "the step along axis {} is 0", at[i]);
    ctx.check(step != INT64_MIN, "the step along axis {} is {}", at[i], step);
    if (extent.known() && start.known() && end.known())
      extent =
          slice_ranges({extent.value()}, {start.value()}, {end.value()}, {}, {step}, "slice")[0]
              .length;
    else
      extent = symbolic_length(extent, start, end, step);
  }
  set_view(ctx, 0, std::move(shape));
}

bool view_slice(ViewContext& ctx) {
  if (element_count(ctx.shape) == 0) return ctx.strides = contiguous_strides(ctx.shape), true;
  const auto starts = view_ints(ctx, 1, "starts"), ends = view_ints(ctx, 2, "ends");
  const auto axes = view_ints(ctx, 3, "axes"), steps = view_ints(ctx, 4, "steps");
  if (!starts || !ends || !axes || !steps) return false;
  const auto ranges = slice_ranges(ctx.input.shape, *starts, *ends, *axes, *steps, "slice");
  for (size_t i = 0; i < ranges.size(); ++i) {
    ctx.offset += ranges[i].start * ctx.input.strides[i];
    ctx.strides.push_back(ranges[i].step * ctx.input.strides[i]);
  }
  return true;
}

// Where part `index` of `count` begins and how long it is, for equal parts of an extent: the last
// ones are shorter when it does not divide.
SliceRange equal_part(int64_t extent, int64_t count, int64_t index) {
  const int64_t chunk = extent / count + (extent % count != 0);
  int64_t first = 0;
  if (__builtin_mul_overflow(chunk, index, &first) || first > extent) first = extent;
  return {first, 1, std::min(chunk, extent - first)};
}

void infer_split(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  const size_t count = ctx.output_count();
  const Dim extent = ctx.shape(0)[axis];
  ctx.check(count > 0, "has no output");
  const auto known = numbers(ctx.ints(1, "sizes"));
  if (!known) {
    for (size_t i = 0; i < count; ++i) {
      Dims shape = ctx.shape(0);
      shape[axis] = ctx.fresh(std::to_string(i));
      ctx.set(i, std::move(shape));
    }
    return;
  }
  const std::vector<int64_t>& sizes = *known;
  ctx.check(sizes.empty() || sizes.size() == count, "{} sizes for {} outputs", sizes.size(), count);
  Dim sum = 0;
  for (int64_t size : sizes) {
    ctx.check(size >= 0, "size {} is negative", size);
    sum = sum + size;
  }
  if (!sizes.empty() && extent.known())
    ctx.check(sum == extent, "sizes [{}] do not add up to the extent {} of axis {}",
              fmt::join(sizes, ", "), extent.str(), axis);
  const auto parts = static_cast<int64_t>(count);
  const Quotient even = quotient({extent}, {parts}, "split");
  for (int64_t i = 0; i < parts; ++i) {
    Dims shape = ctx.shape(0);
    if (!sizes.empty())
      shape[axis] = sizes[i];
    else if (extent.known())
      shape[axis] = equal_part(extent.value(), parts, i).length;
    else if (even.exact)
      shape[axis] = even.value;
    else if (i + 1 < parts)
      shape[axis] = ceil_div(extent, parts);
    else
      shape[axis] = extent - ordered_product({parts - 1, ceil_div(extent, parts)});
    set_view(ctx, i, std::move(shape));
  }
}

bool view_split(ViewContext& ctx) {
  if (element_count(ctx.shape) == 0) return ctx.strides = contiguous_strides(ctx.shape), true;
  const size_t axis = normalize_axis(ctx.attrs.i("axis"), ctx.input.rank(), "split");
  const auto known = view_ints(ctx, 1, "sizes");
  if (!known) return false;
  const std::vector<int64_t>& sizes = *known;
  if (sizes.empty() && ctx.outputs == 0) return false;
  int64_t first = 0;
  if (sizes.empty()) {
    first = equal_part(ctx.input.shape[axis], static_cast<int64_t>(ctx.outputs),
                       static_cast<int64_t>(ctx.output))
                .start;
  } else {
    for (size_t i = 0; i < ctx.output; ++i) first += sizes[i];
  }
  ctx.strides = ctx.input.strides;
  ctx.offset = first * ctx.input.strides[axis];
  return true;
}

std::vector<int64_t> reversed_axes(const Attrs& attrs, int64_t rank) {
  if (!attrs.ints("axes").empty()) return normalize_axes(attrs.ints("axes"), rank, "reverse");
  std::vector<int64_t> all;
  for (int64_t axis = 0; axis < rank; ++axis) all.push_back(axis);
  return all;
}

void infer_reverse(InferContext& ctx) {
  reversed_axes(ctx.attrs, ctx.rank(0));
  set_view(ctx, 0, ctx.shape(0));
}

bool view_reverse(ViewContext& ctx) {
  ctx.strides = ctx.input.strides;
  if (ctx.input.count() == 0) return true;
  for (int64_t axis : reversed_axes(ctx.attrs, ctx.input.rank())) {
    int64_t& stride = ctx.strides[axis];
    ctx.offset += (ctx.input.shape[axis] - 1) * stride;
    stride = -stride;
  }
  return true;
}

// Pads given for some axes, with 0 for the others; nothing while the axes are not known.
std::optional<Dims> pads_of_all_axes(InferContext& ctx, const Dims& pads) {
  const auto axes = numbers(ctx.ints(3, "pads"));
  if (!axes) return std::nullopt;
  const size_t rank = ctx.rank(0);
  ctx.check(pads.size() == 2 * axes->size(), "{} pads are given for {} axes", pads.size(),
            axes->size());
  const std::vector<int64_t> places = normalize_axes(*axes, ctx.rank(0), "pad");
  Dims all(2 * rank, 0);
  for (size_t i = 0; i < places.size(); ++i) {
    all[places[i]] = pads[i];
    all[static_cast<size_t>(places[i]) + rank] = pads[i + places.size()];
  }
  return all;
}

void infer_pad(InferContext& ctx) {
  const Dims& input = ctx.shape(0);
  const size_t rank = input.size();
  if (ctx.has(2) && ctx.type(2).ranked)
    ctx.check(ctx.rank(2) == 0 || (ctx.rank(2) == 1 && ctx.shape(2)[0].is(1)),
              "value must be a scalar, it has the shape {}", to_string(ctx.shape(2)));
  std::optional<Dims> pads = ctx.ints(1, "pads");
  if (pads && ctx.has(3)) pads = pads_of_all_axes(ctx, *pads);
  Dims shape = input;
  if (!pads) {
    for (size_t i = 0; i < rank; ++i) shape[i] = ctx.fresh(std::to_string(i));
    return ctx.set(0, std::move(shape));
  }
  if (pads->empty()) pads->assign(2 * rank, 0);
  ctx.check(pads->size() == 2 * rank, "{} pads for an input of rank {}: {} are needed",
            pads->size(), rank, 2 * rank);
  const std::string& mode = ctx.attrs.s("mode");
  ctx.check(mode != "anti_wrap" || contains(kNumber, ctx.dtype(0)), "mode anti_wrap of {}",
            name(ctx.dtype(0)));
  for (size_t i = 0; i < rank; ++i) {
    const Dim &begin = (*pads)[i], &end = (*pads)[rank + i];
    shape[i] = input[i] + begin + end;
    if (!shape[i].known() || !begin.known() || !end.known() || !input[i].known()) continue;
    const int64_t extent = input[i].value(), most = std::max(begin.value(), end.value());
    ctx.check(shape[i].value() >= 0, "pads {} and {} crop more than the extent {} of axis {}",
              begin.value(), end.value(), extent, i);
    if (mode == "constant" || most <= 0) continue;
    ctx.check(extent > 0, "mode {} cannot pad the empty axis {}", mode, i);
    if (mode == "reflect")
      ctx.check(most < extent, "mode reflect pads axis {} by {}, its extent {} allows {}", i, most,
                extent, extent - 1);
    if (mode == "symmetric")
      ctx.check(most <= extent, "mode symmetric pads axis {} by {}, its extent is {}", i, most,
                extent);
  }
  ctx.set(0, std::move(shape));
}

void infer_trilu(InferContext& ctx) {
  if (ctx.has(1) && ctx.type(1).ranked)
    ctx.check(ctx.rank(1) == 0 || (ctx.rank(1) == 1 && !ctx.shape(1)[0].is(0)),
              "k must be a scalar, it has the shape {}", to_string(ctx.shape(1)));
  ctx.check(ctx.rank(0) >= 2, "input must have rank 2 or more, it has rank {}", ctx.rank(0));
  ctx.set(0, ctx.shape(0));
}

}  // namespace

OP(slice)
    .doc(
        "A range of each axis, with NumPy's rules: negative places count from the end, places "
        "outside are clamped, negative steps walk backwards.")
    .formula("y[i] = x[start + i * step] along each of axes")
    .mps("sliceTensor:dimension:start:length:name:")
    .mps("sliceTensor:starts:ends:strides:name:")
    .mps("sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:")
    .mps("sliceTensor:startTensor:endTensor:strideTensor:startMask:endMask:squeezeMask:name:")
    .mps("sliceTensor:startTensor:sizeTensor:squeezeMask:name:")
    .input("x", kEvery)
    .with(slice_range)
    .output("y")
    .layout(LayoutRule::kSlice)
    .infer(infer_slice)
    .view(view_slice)
    .sample({"plain", {{5, 6}}, {{"starts", Ints{1, 2}}, {"ends", Ints{4, 6}}}})
    .sample(
        {"axis",
         {{3, 6, 2}},
         {{"starts", Ints{-5}}, {"ends", Ints{INT64_MAX}}, {"axes", Ints{1}}, {"steps", Ints{2}}}})
    .sample({"backwards",
             {{4, 7}},
             {{"starts", Ints{-1, INT64_MAX}},
              {"ends", Ints{-3, INT64_MIN}},
              {"axes", Ints{0, -1}},
              {"steps", Ints{-1, -3}}}})
    .sample({"inputs",
             {{4, 5, 6}, {2}, {2}, {2}, {2}},
             {},
             {{1, {1, 5}}, {2, {3, 0}}, {3, {0, 2}}, {4, {1, -2}}}})
    .sample({"inputs_without_axes",
             {{4, 5}, {2}, {2}, {-1}, {2}},
             {},
             {{1, {0, 1}}, {2, {100, -1}}, {4, {2, 1}}}})
    .sample({"nothing_left", {{4, 5}}, {{"starts", Ints{3}}, {"ends", Ints{2}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 3}}, {{"starts", Ints{0}}, {"ends", Ints{2}}}});

OP(split)
    .doc(
        "Cuts an axis into parts: of the sizes given, or as many equal ones as there are outputs "
        "(the last ones shorter when the extent does not divide).")
    .formula("ys[k] = x[first_k : first_k + sizes[k]] along axis")
    .mps("splitTensor:splitSizes:axis:name:")
    .mps("splitTensor:splitSizesTensor:axis:name:")
    .mps("splitTensor:numSplits:axis:name:")
    .input("x", kEvery)
    .variadic_outputs("ys")
    .attr("axis", 0, "the axis to cut")
    .ints("sizes", "extents of the parts; empty: equal parts")
    .layout(LayoutRule::kAxis)
    .infer(infer_split)
    .view(view_split)
    .sample({"sizes", {{2, 6}}, {{"axis", 1}, {"sizes", Ints{1, 3, 2}}}, {}, 3})
    .sample({"input", {{2, 6}, {2}}, {{"axis", 1}}, {{1, {4, 2}}}, 2})
    .sample({"even", {{6, 2}}, {}, {}, 3})
    .sample({"uneven", {{2, 7}}, {{"axis", -1}}, {}, 3})
    .sample({"more_parts_than_elements", {{2}}, {}, {}, 3})
    .sample({"one", {{3}}, {}, {}, 1})
    .sample({"empty_part", {{4}}, {{"sizes", Ints{0, 4, 0}}}, {}, 3})
    .sample({"empty", {{0, 3}}, {{"axis", 1}}, {}, 3});

OP(reverse)
    .doc("Turns axes round: those given, or all.")
    .formula("y[i] = x[n - 1 - i] along each of axes")
    .mps("reverseTensor:axes:name:")
    .mps("reverseTensor:axesTensor:name:")
    .mps("reverseTensor:name:")
    .input("x", kEvery)
    .output("y")
    .attr("axes", kNoInts, "empty: all")
    .infer(infer_reverse)
    .view(view_reverse)
    .sample({"all", {{2, 3}}, {}})
    .sample({"one", {{2, 3, 4}}, {{"axes", Ints{-2}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 2}}, {}});

OP(pad)
    .doc(
        "Borders each axis. Negative pads crop. The border is a value (constant), the edge's "
        "element repeated (edge), the content again (wrap), the same with the other sign at every "
        "turn (anti_wrap), or the content mirrored without (reflect) or with (symmetric) the "
        "edge's element.")
    .formula("y[i] = x[i - begin] inside, the border outside")
    .mps("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue:name:")
    .input("x", kEvery)
    .ints("pads", "the begins of all axes, then the ends")
    .optional("value", kEvery, "T", "a scalar; wins over the attribute")
    .optional("axes", kIndex, "I", "the axes that the input pads speaks of; absent: all")
    .output("y")
    .attr("mode", "constant", {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"})
    .attr("value", 0.0, "of the border, in mode constant")
    .facts(kMoves)
    .layout(LayoutRule::kPads)
    .infer(infer_pad)
    .sample({"constant", {{2, 3}}, {{"pads", Ints{1, 0, 2, 1}}, {"value", 1.0}}})
    .sample({"crop", {{4, 5}}, {{"pads", Ints{-1, 2, 1, -2}}}})
    .sample({"reflect", {{3, 4}}, {{"pads", Ints{2, 3, 1, 0}}, {"mode", "reflect"}}})
    .sample({"edge", {{3, 4}}, {{"pads", Ints{1, 5, 0, 2}}, {"mode", "edge"}}})
    .sample({"wrap", {{3, 2}}, {{"pads", Ints{4, 1, 0, 5}}, {"mode", "wrap"}}})
    .sample({"symmetric", {{3, 4}}, {{"pads", Ints{3, 1, 1, 4}}, {"mode", "symmetric"}}})
    .sample({"crop_and_reflect", {{5}}, {{"pads", Ints{-2, 3}}, {"mode", "reflect"}}})
    .sample({"inputs", {{2, 2}, {4}, {}}, {}, {{1, {0, 1, 1, 0}}}})
    .sample({"some axes", {{2, 3, 4}, {4}, {}, {2}}, {}, {{1, {1, 0, 2, 3}}, {3, {-1, 0}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 2}}, {{"pads", Ints{1, 0, 1, 0}}, {"value", 2.0}}});

OP(trilu)
    .doc("Keeps the upper or lower triangle of the last two axes and zeroes the rest.")
    .formula("y[.., i, j] = x[.., i, j] where j - i >= k (upper) or j - i <= k (lower), else 0")
    .input("x", kEvery)
    .integer("k", 0, "the diagonal that bounds the triangle; positive ones lie above the main one")
    .output("y")
    .attr("upper", true)
    .facts(kMoves)
    .infer(infer_trilu)
    .sample({"upper", {{3, 4}}, {}})
    .sample({"lower", {{2, 4, 3}}, {{"upper", false}}})
    .sample({"above", {{4, 4}}, {{"k", 1}}})
    .sample({"below", {{4, 4}}, {{"k", -2}, {"upper", false}}})
    .sample({"input", {{3, 4}, {}}, {}, {{1, {-1}}}})
    .sample({"nothing", {{2, 2}}, {{"k", 5}}})
    .sample({"empty", {{2, 0, 3}}, {}});

}  // namespace anymps
