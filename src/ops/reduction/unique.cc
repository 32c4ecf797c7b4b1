// SPDX-License-Identifier: Apache-2.0
// Distinct elements, or distinct slices along an axis.
#include "semantics/unique.h"
#include "ops/gradient.h"
#include "ops/infer.h"

namespace anymps {

namespace {

void infer_unique(InferContext& ctx) {
  const int64_t axis = unique_axis(ctx.attrs.ints("axes"), ctx.rank(0));
  const Dim n = ctx.fresh("n");
  Dims shape{n};
  if (axis >= 0) {
    shape = ctx.shape(0);
    shape[axis] = n;
  }
  const Dim all = axis >= 0 ? ctx.shape(0)[axis] : product(ctx.shape(0), 0, ctx.shape(0).size());
  const Dims lengths[] = {shape, {n}, {all}, {n}};
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, lengths[i]);
}

std::vector<Shape> measure_unique(const MeasureContext& ctx) {
  const MeasureInput& x = ctx.inputs[0];
  const int64_t axis = unique_axis(ctx.attrs.ints("axes"), x.desc.rank());
  const Distinct distinct = ctx.op.name == "unique_consecutive" ? find_changes(x.desc, x.data, axis)
                            : axis < 0 && contains(kAny, x.desc.dtype)
                                ? find_distinct_numbers(x.desc, x.data, false)
                                : find_distinct(x.desc, x.data, axis, false);
  const auto count = std::ssize(distinct.first);
  Shape shape{count};
  if (axis >= 0) {
    shape = x.desc.shape;
    shape[axis] = count;
  }
  return {shape, Shape{count}, Shape{std::ssize(distinct.inverse)}, Shape{count}};
}

// What both give, and along what; `first` and `counts` say what these outputs are.
auto distinct(const char* first, const char* counts) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.formula("y = x[indices], x = y[inverse]")
        .input("x", kAny | kText)
        .output("y")
        .output("indices", "i64", first)
        .output("inverse", "i64", "of each element or slice of x, where it is in y")
        .output("counts", "i64", counts)
        .attr("axes", Ints{}, "the one axis that slices lie along; none: elements")
        .infer(infer_unique)
        .measure(measure_unique)
        .tolerance(kExact);
  };
}

}  // namespace

OP(unique)
    .doc(
        "The distinct elements of x, or its distinct slices along an axis, in ascending order or "
        "in the order of their first coming; NaN is equal to NaN.")
    .attr("sorted", true, "ascending; otherwise in the order of their first coming")
    .with(distinct("where each distinct one comes first", "how often each distinct one comes"))
    .sample({"flat", {{6}}, {}, {{0, {2, 1, 1, 3, 4, 3}}}})
    .sample({"coming", {{6}}, {{"sorted", false}}, {{0, {2, 1, 1, 3, 4, 3}}}})
    .sample({"matrix", {{3, 4}}, {}, {{0, {1, 0, 1, 0, 3, 3, 2, 1, 0, 0, 0, 1}}}})
    .sample({"rows", {{3, 3}}, {{"axes", Ints{0}}}, {{0, {1, 0, 0, 1, 0, 0, 2, 3, 4}}}})
    .sample({"columns",
             {{2, 4, 1}},
             {{"axes", Ints{1}}, {"sorted", false}},
             {{0, {1, 1, 0, 1, 2, 1, 0, 2}}}})
    .sample({"empty", {{0}}, {}});

OP(unique_consecutive)
    .doc(
        "The elements of the flattened x, or its slices along an axis, that differ from the one "
        "before; NaN is equal to NaN.")
    .with(distinct("where each run begins", "how long each run is"))
    .sample({"flat", {{8}}, {}, {{0, {2, 1, 1, 3, 3, 3, 1, 1}}}})
    .sample({"matrix", {{2, 4}}, {}, {{0, {1, 0, 0, 0, 0, 3, 2, 2}}}})
    .sample(
        {"rows", {{3, 3}}, {{"axes", std::vector<int64_t>{0}}}, {{0, {1, 0, 0, 1, 0, 0, 2, 3, 4}}}})
    .sample({"empty", {{0}}, {}});

namespace {

// Each distinct element or slice was taken from where it comes first.
void unique_back(GradientContext& ctx) {
  if (!ctx.dy()) return;
  const std::vector<int64_t>& axes = ctx.attrs().ints("axes");
  const Term x = ctx.x(), zeros = ctx.fill_like(x, 0), places = ctx.y(1);
  if (!axes.empty())
    return ctx.set(0, ctx.add("scatter", {ctx.dy(), places, zeros}, {{"axis", axes[0]}}));
  const Term flat = ctx.add("scatter", {ctx.dy(), places, ctx.reshape(zeros, {-1})});
  ctx.set(0, ctx.reshape_like(flat, x));
}

}  // namespace

COMPLEX_GRADIENT(unique) { unique_back(ctx); }
COMPLEX_GRADIENT(unique_consecutive) { unique_back(ctx); }

}  // namespace anymps
