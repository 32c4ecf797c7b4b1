// SPDX-License-Identifier: Apache-2.0
// Where elements belong among others, and how often they come: searches in sorted lists, members of
// sets, counts of integers, histograms.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/expect.h"
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

void infer_search_sorted(InferContext& ctx) {
  const Dims &sorted = ctx.shape(0), &values = ctx.shape(1);
  ctx.check(!sorted.empty(), "sorted must have rank 1 or more");
  if (sorted.size() > 1) {
    ctx.check(values.size() == sorted.size(), "sorted has rank {}, values have rank {}",
              sorted.size(), values.size());
    for (size_t i = 0; i + 1 < sorted.size(); ++i)
      ctx.check(may_equal(sorted[i], values[i]), "sorted has shape {}, values have {}",
                to_string(sorted), to_string(values));
  }
  expect_shape(ctx, 2, sorted);
  ctx.set(0, values);
}

void infer_bincount(InferContext& ctx) {
  expect_rank(ctx, 0, 1, 1);
  expect_shape(ctx, 1, ctx.shape(0));
  ctx.check(ctx.attrs.i("min_length") >= 0, "min_length is {}", ctx.attrs.i("min_length"));
  ctx.set(0, ctx.has(1) ? ctx.dtype(1) : DType::kI64, {ctx.fresh("n")});
}

std::vector<Shape> measure_bincount(const MeasureContext& ctx) {
  const MeasureInput& x = ctx.inputs[0];
  int64_t length = ctx.attrs.i("min_length");
  dispatch<kInt>(x.desc.dtype, [&]<typename T>() {
    const T* values = x.as<T>();
    const int64_t count = x.desc.count();
    if (count == 0) return;
    T low = values[0], high = values[0];
    for (int64_t i = 1; i < count; ++i) {
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
    require(!std::cmp_less(low, 0) && std::cmp_less(high, INT64_MAX),
            "[bincount] x has the element {}", std::cmp_less(low, 0) ? +low : +high);
    length = std::max(length, static_cast<int64_t>(high) + 1);
  });
  return {{length}};
}

void infer_histogram(InferContext& ctx) {
  expect_shape(ctx, 2, ctx.shape(0));
  Dim edges = ctx.attrs.i("bins") + 1;
  if (ctx.has(1)) {
    expect_rank(ctx, 1, 1, 1);
    edges = ctx.shape(1)[0];
    ctx.check(!edges.known() || edges.value() >= 1, "edges must have an element or more");
  } else {
    ctx.check(ctx.attrs.i("bins") >= 1, "bins is {}", ctx.attrs.i("bins"));
    const double low = ctx.attrs.f("low"), high = ctx.attrs.f("high");
    ctx.check(std::isfinite(low) && std::isfinite(high) && low <= high,
              "the range [{}, {}] is not finite and rising", low, high);
    ctx.check(ctx.attrs.f("margin") > 0, "margin is {}", ctx.attrs.f("margin"));
  }
  ctx.set(0, {edges - 1});
  ctx.set(1, {edges});
}

}  // namespace

OP(search_sorted)
    .doc(
        "Where each value would go in an ascending list so that the list stays in order: before "
        "the elements that are equal to it, or with `right` behind them. There is one list for all "
        "values, or one for each row of them. NaN goes to the end.")
    .formula("sorted[y - 1] < value <= sorted[y]; with right: sorted[y - 1] <= value < sorted[y]")
    .input("sorted", kReal, "T", "[n], or [rows…, n]")
    .input("values", kReal, "T", "any shape, or [rows…, m]")
    .optional("sorter", bit(DType::kI64), "I", "of sorted's shape: puts its elements in order")
    .output("y", "i64")
    .attr("right", false, "behind equal elements")
    .infer(infer_search_sorted)
    .domain("sorted", -2, 2)
    .sample({"list", {{5}, {3, 4}}, {}, {{0, {0, 0, 1, 1, 2}}}})
    .sample({"right", {{5}, {3, 4}}, {{"right", true}}, {{0, {0, 0, 1, 1, 2}}}})
    .sample({"rows", {{2, 4}, {2, 3}}, {}, {{0, {0, 1, 2, 3, 1, 1, 1, 9}}}})
    .sample({"sorter", {{4}, {7}, {4}}, {}, {{0, {3, 0, 2, 1}}, {2, {1, 3, 2, 0}}}})
    .sample({"scalar", {{3}, {}}, {}, {{0, {0, 1, 2}}}})
    .sample({"no list", {{0}, {3}}, {}, {{0, {}}}})
    .sample({"no values", {{3}, {0, 2}}, {}, {{0, {0, 1, 2}}}});

OP(is_in)
    .doc("Whether each element is one of `members`; NaN is none.")
    .formula("y[i] = any(x[i] == members)")
    .input("x", kReal | kBoolean)
    .input("members", kReal | kBoolean, "T", "any shape")
    .output("y", "bool")
    .attr("invert", false, "whether it is none of them")
    .infer([](InferContext& ctx) {
      ctx.shape(1);
      ctx.set(0, ctx.shape(0));
    })
    .sample({"matrix",
             {{3, 4}, {2, 2}},
             {},
             {{0, {1, 0, 2, 3, 4, 5, 0, 1, 7, 8, 1, 2}}, {1, {1, 5, 8, 1}}}})
    .sample({"invert", {{6}, {2}}, {{"invert", true}}, {{0, {1, 0, 2, 3, 4, 5}}, {1, {0, 4}}}})
    .sample({"numbers", {{40}, {9}}, {}})
    .sample({"no members", {{3}, {0}}, {}})
    .sample({"scalar", {{}, {3}}, {}})
    .sample({"empty", {{0, 3}, {2}}, {}});

OP(bincount)
    .doc("How often each integer from 0 on comes in x, or the sum of the weights that go with it.")
    .formula("y[k] = sum(weights where x == k)")
    .input("x", kInt, "T", "a vector, nothing below 0")
    .optional("weights", bit(DType::kF32) | bit(DType::kF64), "W", "of x's shape; absent: ones")
    .output("y", "i64",
            "as long as the greatest element + 1; of the weights' dtype if there are any")
    .attr("min_length", 0, "y has at least so many elements")
    .infer(infer_bincount)
    .measure(measure_bincount)
    .domain("x", 0, 9)
    .sample({"counts", {{20}}, {}})
    .sample({"long", {{6}}, {{"min_length", 12}}})
    .sample({"weights", {{20}, {20}}, {}})
    .sample({"empty", {{0}}, {}})
    .sample({"empty long", {{0}}, {{"min_length", 3}}});

OP(histogram)
    .doc(
        "How many elements, or what sum of their weights, fall into each bin. A bin holds its left "
        "edge, and the last one its right edge too; what is outside, and NaN, does not count. Bins "
        "are given by their edges, or are equal parts of [low, high]: of the elements' own range "
        "where low is high.")
    .formula("y[k] = sum(weights where edges[k] <= x < edges[k + 1])")
    .input("x", kFloat)
    .optional("edges", kFloat, "T", "a rising vector")
    .optional("weights", kFloat, "T", "of x's shape; absent: ones")
    .output("y")
    .output("bin_edges")
    .attr("bins", 100, "how many, without edges")
    .attr("low", 0.0, "the left edge of the first bin, without edges")
    .attr("high", 0.0, "the right edge of the last bin")
    .attr("margin", 0.5, "by which a range without extent is widened on both sides")
    .attr("density", false, "so that the integral over all bins is 1")
    .infer(infer_histogram)
    .sample({"range", {{5, 9}}, {{"bins", 4}, {"low", -1.0}, {"high", 1.0}}})
    .sample({"edges", {{45}, {4}}, {}, {{1, {-2, -1, 1, 2}}}})
    .sample({"own range", {{31}}, {{"bins", 7}}})
    .sample({"equal", {{3}}, {{"bins", 3}}, {{0, {2, 2, 2}}}})
    .sample({"weights", {{45}, {4}, {45}}, {{"density", true}}, {{1, {-2, -1, 1, 2}}}})
    .sample({"no edges",
             {{2, 3}, Sample::absent, {2, 3}},
             {{"bins", 2}, {"low", -2.0}, {"high", 2.0}}})
    .sample({"empty", {{0}}, {{"bins", 3}}});

ZERO_GRADIENT(search_sorted, "gives places");
ZERO_GRADIENT(is_in, "gives bool");

GRADIENT(bincount) {
  if (ctx.has(1))
    ctx.set(1, ctx.add("gather", {ctx.dy(), ctx.x().op("cast", {{"dtype", DType::kI64}})},
                       {{"axis", 0}}));
}

NO_GRADIENT(histogram,
            "counts are made of steps, and weights of a histogram have no gradient here");

}  // namespace anymps
