// SPDX-License-Identifier: Apache-2.0
// Reductions of segments of an axis, which lengths or offsets cut it into.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "semantics/segments.h"

namespace anymps {

namespace {

// x is input `x`, lengths and offsets follow; returns the shape of y.
Dims segmented(InferContext& ctx, size_t x) {
  ctx.check(ctx.has(x + 1) != ctx.has(x + 2), "must have either lengths or offsets");
  const size_t by = ctx.has(x + 1) ? x + 1 : x + 2;
  const Dims& numbers = ctx.shape(by);
  Dims y = ctx.shape(x);
  ctx.check(!numbers.empty() && numbers.size() <= y.size(),
            "{} {} must have rank 1 to that of x {}", ctx.op.inputs[by].name, to_string(numbers),
            to_string(y));
  const size_t axis = numbers.size() - 1;
  for (size_t i = 0; i < axis; ++i)
    ctx.check(may_equal(numbers[i], y[i]), "{} {} must begin as x {}", ctx.op.inputs[by].name,
              to_string(numbers), to_string(y));
  const bool offsets = by == x + 2;
  ctx.check(!offsets || !numbers[axis].is(0), "offsets are empty, must have the last one");
  y[axis] = offsets ? numbers[axis] - Dim(1) : numbers[axis];
  return y;
}

OpWriter& segments(OpWriter& op) {
  return op
      .optional("lengths", kIndex, "I",
                "x's shape up to the axis, then of the segments; their sum "
                "is the axis")
      .optional("offsets", kIndex, "I", "the same with where each begins, and where the last ends")
      .attr("mode", "sum", segment_mode_choices())
      .attr("initial", 0.0, "what a reduction starts from")
      .attr("has_initial", false,
            "false: nothing; then an empty segment has 0, NaN, -infinity, "
            "infinity or 1");
}

const Shape kNone = {-1};

}  // namespace

OP(segment_reduce)
    .doc(
        "Reduces the segments of an axis, the last of those that lengths or offsets have. The mean "
        "is over the segment's length; a segment with NaN is NaN.")
    .formula("y[.., s, ..] = reduce of x[.., begin(s) .. end(s), ..]")
    .input("x", kFloat)
    .with(segments)
    .output("y")
    .infer([](InferContext& ctx) { ctx.set(0, segmented(ctx, 0)); })
    .tolerance({.f32 = 2e-5})
    .sample({"rows", {{6, 3}, {4}}, {}, {{1, {2, 0, 3, 1}}}})
    .sample({"mean", {{6, 33}, {3}}, {{"mode", "mean"}}, {{1, {2, 3, 1}}}})
    .sample({"mean of nothing",
             {{3, 2}, {3}},
             {{"mode", "mean"}, {"has_initial", true}, {"initial", 2.0}},
             {{1, {2, 0, 1}}}})
    .sample({"max", {{2, 5}, {2, 2}}, {{"mode", "max"}}, {{1, {2, 3, 4, 1}}}})
    .sample({"min",
             {{2, 5, 3}, kNone, {2, 3}},
             {{"mode", "min"}, {"has_initial", true}, {"initial", 1.0}},
             {{2, {0, 2, 4, 1, 1, 5}}}})
    .sample({"prod", {{2, 5, 3}, kNone, {3}}, {{"mode", "prod"}}, {{2, {0, 1, 2}}}})
    .sample({"empty", {{0, 3}, {2}}, {}, {{1, {0, 0}}}})
    .sample({"no segments", {{0, 3}, {0}}, {{"mode", "max"}}, {{1, {}}}});

OP(segment_reduce_gradient)
    .doc(
        "The gradient of segment_reduce. Equal extrema share it; of a product, an element that is "
        "0 "
        "or NaN gets the product of the others.")
    .formula("dx[.., i, ..] = dy[.., s, ..] * slope, i in segment s")
    .input("dy", kFloat)
    .input("y", kFloat)
    .input("x", kFloat)
    .with(segments)
    .output("dx")
    .infer([](InferContext& ctx) {
      const Dims y = segmented(ctx, 2);
      expect_shape(ctx, 0, y);
      expect_shape(ctx, 1, y);
      ctx.set(0, ctx.shape(2));
    })
    .tolerance({.f32 = 2e-5})
    .sample({"rows", {{4, 3}, {4, 3}, {6, 3}, {4}}, {}, {{3, {2, 0, 3, 1}}}})
    .sample({"mean", {{3, 33}, {3, 33}, {6, 33}, {3}}, {{"mode", "mean"}}, {{3, {2, 3, 1}}}})
    .sample({"max", {{2, 2}, {2, 2}, {2, 5}, {2, 2}}, {{"mode", "max"}}, {{3, {2, 3, 4, 1}}}})
    .sample({"min",
             {{2, 2, 3}, {2, 2, 3}, {2, 5, 3}, kNone, {2, 3}},
             {{"mode", "min"}},
             {{4, {0, 2, 4, 1, 1, 5}}}})
    .sample({"prod",
             {{2, 3}, {2, 3}, {5, 3}, {2}},
             {{"mode", "prod"}, {"has_initial", true}, {"initial", 2.0}},
             {{3, {2, 3}}}})
    .sample({"empty", {{2, 3}, {2, 3}, {0, 3}, {2}}, {}, {{3, {0, 0}}}});

GRADIENT(segment_reduce) {
  std::vector<Term> inputs{ctx.dy(), ctx.y(), ctx.x()};
  for (const size_t i : {size_t{1}, size_t{2}}) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  ctx.set(0, ctx.add("segment_reduce_gradient", inputs, ctx.attrs().named()));
}

NO_GRADIENT(segment_reduce_gradient, "no framework differentiates it");

}  // namespace anymps
