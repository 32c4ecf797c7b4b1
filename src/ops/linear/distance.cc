// SPDX-License-Identifier: Apache-2.0
// Distances of points, and the cross product.
#include "ops/gradient_parts.h"
#include "ops/linear/matrix_shapes.h"

namespace anymps {

namespace {

OpWriter& norm_order(OpWriter& op) {
  return op.attr("p", 2.0, "the order of the norm: 0, inf or any positive number")
      .no_layout_tests();
}

void check_order(InferContext& ctx) {
  ctx.check(ctx.attrs.f("p") >= 0, "p is {}, must not be negative", ctx.attrs.f("p"));
}

Dims distances(InferContext& ctx, size_t a, size_t b) {
  const MatrixShape x = matrix_shape(ctx, a), y = matrix_shape(ctx, b);
  ctx.check(may_equal(x.columns, y.columns), "a {} and b {} must have points of the same rank",
            to_string(ctx.shape(a)), to_string(ctx.shape(b)));
  return joined(broadcast(x.batch, y.batch, ctx.op.name.c_str()), {x.rows, y.rows});
}

void infer_cdist(InferContext& ctx) {
  check_order(ctx);
  ctx.set(0, distances(ctx, 0, 1));
}

void infer_cdist_gradient(InferContext& ctx) {
  check_order(ctx);
  const Dims y = distances(ctx, 1, 2);
  expect_shape(ctx, 0, y);
  expect_shape(ctx, 3, y);
  Dims dx(y.begin(), y.end() - 1);
  dx.push_back(ctx.shape(1).back());
  ctx.set(0, std::move(dx));
}

Dims pairs(InferContext& ctx, size_t x) {
  expect_rank(ctx, x, 2, 2);
  const Dim n = ctx.shape(x)[0];
  return {floor_div(n * (n - 1), 2)};
}

void infer_pdist(InferContext& ctx) {
  check_order(ctx);
  ctx.set(0, pairs(ctx, 0));
}

void infer_pdist_gradient(InferContext& ctx) {
  check_order(ctx);
  const Dims y = pairs(ctx, 1);
  expect_shape(ctx, 0, y);
  expect_shape(ctx, 2, y);
  ctx.set(0, ctx.shape(1));
}

void infer_cross(InferContext& ctx) {
  const Dims y = broadcast(ctx.shape(0), ctx.shape(1), "cross");
  const auto rank = std::ssize(y);
  const int64_t axis = normalize_axis(ctx.attrs.i("axis"), rank, "cross");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t own = axis - (rank - ctx.rank(i));
    ctx.check(own >= 0 && may_equal(ctx.shape(i)[own], Dim(3)),
              "input '{}' {} must have 3 elements along axis {}", ctx.op.inputs[i].name,
              to_string(ctx.shape(i)), axis);
  }
  ctx.set(0, y);
}

const double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

OP(cdist)
    .doc("The distances of every point of a to every point of b.")
    .formula("y[i, j] = norm(a[i] - b[j], p)")
    .input("a", kPrecise, "T", "[…, n, d]")
    .input("b", kPrecise, "T", "[…, m, d]; the batches broadcast")
    .output("y", "T", "[…, n, m]")
    .with(norm_order)
    .infer(infer_cdist)
    .sample({"euclid", {{3, 5}, {4, 5}}, {}})
    .sample({"batch", {{2, 1, 3, 2}, {5, 70, 2}}, {}})
    .sample({"city", {{2, 3, 4}, {2, 2, 4}}, {{"p", 1.0}}})
    .sample({"cubic", {{3, 4}, {2, 4}}, {{"p", 3.0}}})
    .sample({"root", {{3, 4}, {2, 4}}, {{"p", 0.5}}})
    .sample({"largest", {{3, 4}, {2, 4}}, {{"p", kInfinite}}})
    .sample({"count", {{3, 4}, {2, 4}}, {{"p", 0.0}}})
    .sample({"no axes", {{3, 0}, {2, 0}}, {}})
    .sample({"empty", {{0, 3}, {2, 3}}, {}});

OP(cdist_gradient)
    .doc("The gradient of cdist to a; that to b is the one of b and a, with dy and y transposed.")
    .formula("da[i] = sum over j of dy[i, j] * slope of norm(a[i] - b[j], p)")
    .input("dy", kPrecise, "T", "[…, n, m]")
    .input("a", kPrecise, "T", "[…, n, d]")
    .input("b", kPrecise, "T", "[…, m, d]")
    .input("y", kPrecise, "T", "[…, n, m]")
    .output("da", "T", "[…, n, d], with the batch of y")
    .with(norm_order)
    .infer(infer_cdist_gradient)
    .domain("y", 0.5, 2)
    .sample({"euclid", {{3, 4}, {3, 5}, {4, 5}, {3, 4}}, {}})
    .sample({"batch", {{2, 3, 4}, {3, 2}, {2, 4, 2}, {2, 3, 4}}, {{"p", 3.0}}})
    .sample({"city", {{3, 2}, {3, 4}, {2, 4}, {3, 2}}, {{"p", 1.0}}})
    .sample({"empty", {{3, 0}, {3, 2}, {0, 2}, {3, 0}}, {}});

OP(pdist)
    .doc("The distances of every pair of different points: [0, 1], [0, 2], ..., [n - 2, n - 1].")
    .formula("y[pair of i < j] = norm(x[i] - x[j], p)")
    .input("x", kPrecise, "T", "[n, d]")
    .output("y", "T", "[n * (n - 1) / 2]")
    .with(norm_order)
    .infer(infer_pdist)
    .sample({"euclid", {{5, 3}}, {}})
    .sample({"city", {{4, 3}}, {{"p", 1.0}}})
    .sample({"cubic", {{4, 3}}, {{"p", 3.0}}})
    .sample({"largest", {{4, 3}}, {{"p", kInfinite}}})
    .sample({"count", {{4, 3}}, {{"p", 0.0}}})
    .sample({"one", {{1, 3}}, {}})
    .sample({"empty", {{0, 3}}, {}});

OP(pdist_gradient)
    .doc("The gradient of pdist.")
    .formula("dx[i] = sum over j of +-dy[pair] * slope of norm(x[i] - x[j], p)")
    .input("dy", kPrecise, "T", "[n * (n - 1) / 2]")
    .input("x", kPrecise, "T", "[n, d]")
    .input("y", kPrecise, "T", "[n * (n - 1) / 2]")
    .output("dx", "T", "[n, d]")
    .with(norm_order)
    .infer(infer_pdist_gradient)
    .domain("y", 0.5, 2)
    .sample({"euclid", {{10}, {5, 3}, {10}}, {}})
    .sample({"cubic", {{6}, {4, 3}, {6}}, {{"p", 3.0}}})
    .sample({"one", {{0}, {1, 3}, {0}}, {}});

OP(cross)
    .doc("The cross product of vectors of 3 elements along an axis; the inputs broadcast.")
    .formula("y = [a1*b2 - a2*b1, a2*b0 - a0*b2, a0*b1 - a1*b0]")
    .input("a", kNumber)
    .input("b", kNumber)
    .output("y")
    .attr("axis", -1, "of y; it has 3 elements")
    .reference_only("rare, and small where it is not")
    .infer(infer_cross)
    .sample({"last", {{4, 3}, {4, 3}}, {}})
    .sample({"first", {{3, 5}, {3, 5}}, {{"axis", 0}}})
    .sample({"broadcast", {{2, 1, 3}, {4, 3}}, {}})
    .sample({"empty", {{0, 3}, {0, 3}}, {}});

GRADIENT(cdist) {
  const NamedAttrs attrs = ctx.attrs().named();
  const Term a = ctx.x(0), b = ctx.x(1), y = ctx.y(), dy = ctx.dy();
  if (ctx.wants(0)) ctx.set(0, ctx.add("cdist_gradient", {dy, a, b, y}, attrs));
  if (ctx.wants(1))
    ctx.set(1, ctx.add("cdist_gradient", {ctx.swap_last(dy), b, a, ctx.swap_last(y)}, attrs));
}
NO_GRADIENT(cdist_gradient, "distances have no second gradient here");

GRADIENT(pdist) {
  ctx.set(0, ctx.add("pdist_gradient", {ctx.dy(), ctx.x(), ctx.y()}, ctx.attrs().named()));
}
NO_GRADIENT(pdist_gradient, "distances have no second gradient here");

COMPLEX_GRADIENT(cross) {
  const NamedAttrs attrs = ctx.attrs().named();
  if (ctx.wants(0)) ctx.set(0, ctx.add("cross", {conjugated(ctx.x(1)), ctx.dy()}, attrs));
  if (ctx.wants(1)) ctx.set(1, ctx.add("cross", {ctx.dy(), conjugated(ctx.x(0))}, attrs));
}

}  // namespace anymps
