// SPDX-License-Identifier: Apache-2.0
// Elements that go round along axes, that are repeated, and windows that slide along an axis.
#include "ops/movement/roll.h"

#include "ops/gradient_parts.h"
#include "ops/infer.h"

namespace anymps {

std::vector<int64_t> roll_shifts(const Attrs& attrs, const Shape& shape) {
  const Ints &given = attrs.ints("shifts"), &axes = attrs.ints("axes");
  std::vector<int64_t> shifts(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], std::ssize(shape), "roll");
    const int64_t extent = std::max<int64_t>(shape[axis], 1);
    shifts[axis] = ((shifts[axis] + given[i] % extent) % extent + extent) % extent;
  }
  return shifts;
}

namespace {

void infer_roll(InferContext& ctx) {
  const Ints &shifts = ctx.attrs.ints("shifts"), &axes = ctx.attrs.ints("axes");
  ctx.check(axes.empty() ? shifts.size() == 1 : shifts.size() == axes.size(),
            "there are {} shifts for {} axes", shifts.size(), axes.size());
  for (const int64_t axis : axes) normalize_axis(axis, ctx.rank(0), "roll");
  infer_same(ctx);
}

void add_repeat(int64_t& sum, int64_t times) {
  require(times >= 0, "[repeat_interleave] repeats has the entry {}, must not be negative", times);
  require(!__builtin_add_overflow(sum, times, &sum), "[repeat_interleave] too many repeats");
}

void infer_repeat_interleave(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  Dims y = ctx.shape(0);
  const int64_t repeats = ctx.attrs.i("repeats"), size = ctx.attrs.i("output_size");
  if (!ctx.has(1)) {
    ctx.check(repeats >= 0, "repeats is {}, must not be negative", repeats);
    y[axis] = y[axis] * Dim(repeats);
    return ctx.set(0, y);
  }
  const Dims& counts = ctx.shape(1);
  ctx.check(counts.size() == 1 &&
                (counts[0].is(1) || !counts[0].known() || !y[axis].known() || counts[0] == y[axis]),
            "repeats {} must have one element, or one for each of the axis of {}",
            to_string(counts), y[axis].str());
  const Dims* content = ctx.content(1);
  const std::optional<Ints> known = content ? numbers(*content) : std::nullopt;
  if (known) {
    int64_t sum = 0;
    for (const int64_t times : *known) add_repeat(sum, times);
    y[axis] = counts[0].is(1) ? y[axis] * Dim(sum) : Dim(sum);
  } else {
    y[axis] = size >= 0 ? Dim(size) : ctx.fresh("n");
  }
  ctx.set(0, y);
}

std::vector<Shape> measure_repeat_interleave(const MeasureContext& ctx) {
  const MeasureInput &x = ctx.inputs[0], &repeats = ctx.inputs[1];
  Shape y = x.desc.shape;
  const size_t axis = normalize_axis(ctx.attrs.i("axis"), std::ssize(y), "repeat_interleave");
  const int64_t count = repeats.desc.count();
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool wide = repeats.desc.dtype == DType::kI64;
    add_repeat(sum, wide ? repeats.as<int64_t>()[i] : int64_t{repeats.as<int32_t>()[i]});
  }
  require(count != 1 || !__builtin_mul_overflow(sum, y[axis], &sum),
          "[repeat_interleave] too many repeats");
  y[axis] = sum;
  return {y};
}

void infer_sliding_window(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  const int64_t size = ctx.attrs.i("size"), step = ctx.attrs.i("step");
  ctx.check(size >= 0 && step >= 1, "size is {} and step {}, must be at least 0 and 1", size, step);
  Dims y = ctx.shape(0);
  ctx.check(!y[axis].known() || size <= y[axis].value(), "size is {}, the axis has the extent {}",
            size, y[axis].str());
  y[axis] = floor_div(y[axis] - Dim(size), Dim(step)) + Dim(1);
  y.push_back(size);
  set_view(ctx, 0, std::move(y));
}

bool view_sliding_window(ViewContext& ctx) {
  const size_t axis = normalize_axis(ctx.attrs.i("axis"), ctx.input.rank(), "sliding_window");
  ctx.strides = ctx.input.strides;
  ctx.strides.push_back(ctx.input.strides[axis]);
  ctx.strides[axis] *= ctx.attrs.i("step");
  return true;
}

}  // namespace

OP(roll)
    .doc(
        "x with its elements moved along axes; what leaves at the end comes in at the beginning. "
        "Without axes the flattened x is moved.")
    .formula("y[i] = x[(i - shift) mod n] along each of axes")
    .input("x", kEvery)
    .output("y")
    .required("shifts", AttrKind::kInts, "one for each axis; negative ones move to the beginning")
    .attr("axes", kNoInts, "none: x is flattened")
    .facts(kMoves)
    .infer(infer_roll)
    .sample({"rows", {{5, 3}}, {{"shifts", Ints{2}}, {"axes", Ints{0}}}})
    .sample({"both", {{4, 5, 3}}, {{"shifts", Ints{-1, 8}}, {"axes", Ints{-1, 1}}}})
    .sample({"flat", {{3, 4}}, {{"shifts", Ints{-5}}}})
    .sample({"twice", {{7}}, {{"shifts", Ints{3, 5}}, {"axes", Ints{0, 0}}}})
    .sample({"scalar", {{}}, {{"shifts", Ints{3}}}})
    .sample({"empty", {{0, 3}}, {{"shifts", Ints{1, 1}}, {"axes", Ints{0, 1}}}});

COMPLEX_GRADIENT(roll) {
  Ints back = ctx.attrs().ints("shifts");
  for (int64_t& shift : back) shift = static_cast<int64_t>(-static_cast<uint64_t>(shift));
  ctx.set(0, ctx.dy().op("roll", {{"shifts", back}, {"axes", ctx.attrs().ints("axes")}}));
}

OP(repeat_interleave)
    .doc("Each slice along an axis as often as repeats say, one after the other.")
    .formula("y[.., j, ..] = x[.., i, ..] for repeats[i] places j in a row")
    .input("x", kEvery)
    .optional("repeats", kIndex, "I", "[1] or one for each slice; wins over the attribute")
    .output("y")
    .attr("repeats", 1, "of every slice")
    .attr("axis", 0)
    .attr("output_size", -1, "the sum of the repeats, if it is known; negative: it is not")
    .facts(kMoves)
    .infer(infer_repeat_interleave)
    .measure(measure_repeat_interleave)
    .sample({"twice", {{3, 2}}, {{"repeats", 2}}})
    .sample({"columns", {{3, 2, 2}}, {{"repeats", 3}, {"axis", -1}}})
    .sample({"each", {{3, 4}, {3}}, {}, {{1, {2, 0, 3}}}})
    .sample({"middle", {{2, 3, 4}, {3}}, {{"axis", 1}}, {{1, {1, 2, 0}}}})
    .sample({"one for all", {{2, 3}, {1}}, {{"axis", 1}}, {{1, {2}}}})
    .sample({"to nothing", {{3}}, {{"repeats", 0}}})
    .sample({"empty", {{0, 2}, {0}}, {}, {{1, {}}}});

COMPLEX_GRADIENT(repeat_interleave) { ctx.set(0, move_back(ctx)); }

OP(sliding_window)
    .doc("The windows of an axis, each as the last axis of y: a view, in which windows overlap.")
    .formula("y[.., i, .., k] = x[.., i * step + k, ..]")
    .input("x", kEvery)
    .output("y")
    .attr("axis", 0)
    .attr("size", 1, "of a window")
    .attr("step", 1, "from one window to the next")
    .infer(infer_sliding_window)
    .view(view_sliding_window)
    .sample({"rows", {{6, 3}}, {{"size", 3}}})
    .sample({"strided", {{2, 7, 3}}, {{"axis", 1}, {"size", 2}, {"step", 3}}})
    .sample({"apart", {{9}}, {{"axis", -1}, {"size", 2}, {"step", 4}}})
    .sample({"nothing", {{3, 2}}, {{"size", 0}}})
    .sample({"empty", {{4, 0}}, {{"size", 2}}});

COMPLEX_GRADIENT(sliding_window) { ctx.set(0, move_back(ctx)); }

}  // namespace anymps
