// SPDX-License-Identifier: Apache-2.0
// Diagonals of matrices, which are views, and matrices of diagonals.
#include <cstdlib>

#include "ops/gradient_parts.h"
#include "ops/infer.h"

namespace anymps {

namespace {

struct DiagonalAxes {
  size_t rows, columns;
  int64_t offset;

  DiagonalAxes(const Attrs& attrs, int64_t rank, const char* op = "diagonal")
      : rows(normalize_axis(attrs.i("axis1"), rank, op)),
        columns(normalize_axis(attrs.i("axis2"), rank, op)),
        offset(attrs.i("offset")) {
    require(rows != columns, "[{}] axis1 and axis2 are the same axis {}", op, rows);
  }
};

void infer_diagonal(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  ctx.check(x.size() >= 2, "x {} must have rank 2 at least", to_string(x));
  const DiagonalAxes axes(ctx.attrs, ctx.rank(0));
  Dims y;
  for (size_t i = 0; i < x.size(); ++i)
    if (i != axes.rows && i != axes.columns) y.push_back(x[i]);
  const Dim rows = axes.offset < 0 ? x[axes.rows] + axes.offset : x[axes.rows];
  const Dim columns = axes.offset > 0 ? x[axes.columns] - axes.offset : x[axes.columns];
  y.push_back(max(min(rows, columns), Dim(0)));
  set_view(ctx, 0, std::move(y));
}

bool view_diagonal(ViewContext& ctx) {
  const DiagonalAxes axes(ctx.attrs, ctx.input.rank());
  const Strides& steps = ctx.input.strides;
  for (size_t i = 0; i < steps.size(); ++i)
    if (i != axes.rows && i != axes.columns) ctx.strides.push_back(steps[i]);
  ctx.strides.push_back(steps[axes.rows] + steps[axes.columns]);
  if (ctx.shape.back() == 0) return true;
  ctx.offset =
      axes.offset < 0 ? -axes.offset * steps[axes.rows] : axes.offset * steps[axes.columns];
  return true;
}

void infer_diag_embed(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  ctx.check(!x.empty(), "x is a scalar, must have an axis");
  const DiagonalAxes axes(ctx.attrs, ctx.rank(0) + 1, "diag_embed");
  constexpr int64_t kMost = int64_t{1} << 40;
  ctx.check(axes.offset >= -kMost && axes.offset <= kMost, "offset is {}, must be within {}",
            axes.offset, kMost);
  const Dim extent = x.back() + Dim(std::abs(axes.offset));
  Dims y;
  for (size_t i = 0, next = 0; i < x.size() + 1; ++i)
    y.push_back(i == axes.rows || i == axes.columns ? extent : x[next++]);
  ctx.set(0, y);
}

}  // namespace

OP(diagonal)
    .doc("A diagonal of the matrices of two axes, as the last axis; the two are gone.")
    .formula("y[.., i] = x[.., i - min(offset, 0), .., i + max(offset, 0), ..]")
    .input("x", kEvery)
    .output("y")
    .attr("offset", 0, "how far above the main diagonal; negative: below")
    .attr("axis1", 0, "the axis of rows")
    .attr("axis2", 1, "the axis of columns")
    .infer(infer_diagonal)
    .view(view_diagonal)
    .sample({"square", {{3, 3}}, {}})
    .sample({"above", {{3, 5}}, {{"offset", 1}}})
    .sample({"below", {{4, 3}}, {{"offset", -2}}})
    .sample({"batch", {{2, 3, 4}}, {{"axis1", -2}, {"axis2", -1}}})
    .sample({"turned", {{2, 3, 4}}, {{"axis1", 2}, {"axis2", 0}, {"offset", 1}}})
    .sample({"outside", {{2, 2}}, {{"offset", 5}}})
    .sample({"empty", {{0, 3}}, {}});

COMPLEX_GRADIENT(diagonal) { ctx.set(0, move_back(ctx)); }

OP(diag_embed)
    .doc("Matrices, in two axes of y, with the last axis of x as a diagonal and zeros elsewhere.")
    .formula("y = 0, y[.., i - min(offset, 0), .., i + max(offset, 0), ..] = x[.., i]")
    .input("x", kAny)
    .output("y")
    .attr("offset", 0, "how far above the main diagonal; negative: below")
    .attr("axis1", -2, "the axis of rows")
    .attr("axis2", -1, "the axis of columns")
    .facts(kMoves)
    .infer(infer_diag_embed)
    .sample({"vector", {{3}}, {}})
    .sample({"above", {{2, 3}}, {{"offset", 2}}})
    .sample({"below", {{2, 3}}, {{"offset", -1}, {"axis1", 0}, {"axis2", 1}}})
    .sample({"turned", {{2, 4, 3}}, {{"axis1", -1}, {"axis2", 1}, {"offset", 1}}})
    .sample({"empty", {{2, 0}}, {{"offset", 1}}});

COMPLEX_GRADIENT(diag_embed) {
  ctx.set(0, ctx.dy().op("diagonal", {{"offset", ctx.attrs().i("offset")},
                                      {"axis1", ctx.attrs().i("axis1")},
                                      {"axis2", ctx.attrs().i("axis2")}}));
}

}  // namespace anymps
