// SPDX-License-Identifier: Apache-2.0
// Equations with symmetric or Hermitian matrices: Cholesky's factors applied, and the factors of
// Bunch and Kaufman for matrices that are not positive definite.
#include "ops/gradient_parts.h"
#include "ops/linear/matrix_shapes.h"

namespace anymps {

namespace {

void infer_cholesky_solve(InferContext& ctx) {
  ctx.set(0, solution_shape(ctx, square_shape(ctx, 1), 0, true));
}

void infer_cholesky_inverse(InferContext& ctx) {
  square_shape(ctx, 0);
  ctx.set(0, ctx.shape(0));
}

void infer_ldl_factor(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  set_packed(ctx, a, a.rows);
}

void infer_ldl_solve(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  expect_shape(ctx, 1, joined(a.batch, {a.rows}));
  ctx.set(0, solution_shape(ctx, a, 2, true));
}

OpWriter& cholesky_factor(OpWriter& op) {
  return op.input("factor", kMatrix, "T", "[…, n, n], of which one half is read")
      .output("y")
      .attr("upper", false, "the factor is the upper one")
      .domain("factor", 0.5, 1.5);
}

}  // namespace

OP(cholesky_solve)
    .doc("The solution of linear equations whose matrix cholesky has factored.")
    .formula("l @ l^H @ y = b; u^H @ u @ y = b for upper")
    .input("b", kMatrix, "T", "[…, n, k]; the batches broadcast")
    .with(cholesky_factor)
    .infer(infer_cholesky_solve)
    .with(cubic_work(2))
    .sample({"lower", {{3, 2}, {3, 3}}, {}})
    .sample({"upper", {{2, 3, 2}, {3, 3}}, {{"upper", true}}})
    .sample({"batch", {{4, 1}, {2, 4, 4}}, {}})
    .sample({"empty", {{3, 1}, {0, 3, 3}}, {}})
    .sample({"no rows", {{0, 2}, {0, 0}}, {}});

OP(cholesky_inverse)
    .doc("The inverse of matrices that cholesky has factored.")
    .formula("(l @ l^H)^-1; (u^H @ u)^-1 for upper")
    .with(cholesky_factor)
    .infer(infer_cholesky_inverse)
    .with(cubic_work(1.4))
    .with(square_samples)
    .sample({"upper", {{2, 3, 3}}, {{"upper", true}}});

OP(ldl_factor)
    .doc(
        "The factors of symmetric, or Hermitian, matrices by Bunch and Kaufman in LAPACK's packed "
        "form (sytrf, hetrf), of which the lower half is read. A singular matrix is an error "
        "unless info is asked for.")
    .formula("l @ d @ l^T = x with rows and columns exchanged; l @ d @ l^H for hermitian")
    .input("x", kMatrix, "T", "[…, n, n]")
    .output("ld", "T", "[…, n, n]: the blocks of d, of 1 or 2 rows, and l below them")
    .output("pivots", "i32",
            "optional; […, n], counted from 1: the exchanged row; two equal negative ones for a "
            "block of 2 rows")
    .by_product("info", "i32", "optional, […]: 0, or which block of d is 0, counted from 1")
    .attr("hermitian", false, "complex matrices are their conjugate transposes")
    .infer(infer_ldl_factor)
    .with(cubic_work(0.35))
    .with(square_samples)
    .sample({"hermitian", {{2, 5, 5}}, {{"hermitian", true}}})
    .sample({"blocks of 2", {{4, 4}}, {}, {{0, {0, 1, 2, 3, 1, 0, 4, 1, 2, 4, 0, 2, 3, 1, 2, 0}}}})
    .sample({"zero", {{2, 2}}, {}, {{0, {0, 0, 0, 0}}}});

OP(ldl_solve)
    .doc("The solution of linear equations whose matrix ldl_factor has factored.")
    .formula("x @ y = b")
    .with(factored_equations("ld", "[…, n], as ldl_factor gives them",
                             "[…, n, k]; the batches broadcast"))
    .attr("hermitian", false, "as it was factored")
    .infer(infer_ldl_solve)
    .with(cubic_work(2))
    .sample({"3", {{3, 3}, {3}, {3, 2}}, {}, {{1, {2, 3, 3}}}})
    .sample({"block", {{4, 4}, {4}, {2, 4, 1}}, {}, {{1, {2, -4, -4, 4}}}})
    .sample({"blocks",
             {{2, 4, 4}, {2, 4}, {4, 2}},
             {{"hermitian", true}},
             {{1, {-3, -3, -4, -4, 1, 2, -4, -4}}}})
    .sample({"empty", {{0, 3, 3}, {0, 3}, {3, 1}}, {}, {{1, {}}}});

namespace {

Term half_of(const Term& m, bool upper) { return m.op("trilu", {{"upper", upper}}); }

// l @ l^H of a factor, or u^H @ u.
Term product_of_factor(const Term& factor, bool upper) {
  const Term f = half_of(factor, upper), g = conjugated(f);
  return upper ? matrix_product(g, f, true, false) : matrix_product(f, g, false, true);
}

}  // namespace

COMPLEX_GRADIENT(cholesky_solve) {
  const bool upper = ctx.attrs().b("upper");
  const Term db = ctx.add("cholesky_solve", {ctx.dy(), ctx.x(1)}, {{"upper", upper}});
  ctx.set(0, db);
  if (!ctx.wants(1)) return;
  // Of the matrix m: -db @ y^H. Of the factor: (dm + dm^H) @ l, or u @ (dm + dm^H).
  const Term dm = matrix_product(db, conjugated(ctx.y()), false, true);
  const Term both = dm + conjugated(ctx.swap_last(dm)), f = half_of(ctx.x(1), upper);
  ctx.set(1, -half_of(upper ? matrix_product(f, both, false, false)
                            : matrix_product(both, f, false, false),
                      upper));
}

COMPLEX_GRADIENT(cholesky_inverse) {
  ctx.through({product_of_factor(ctx.x(), ctx.attrs().b("upper")).op("inverse")});
}

NO_GRADIENT(ldl_factor, "packed factors are not differentiated; solve has a gradient");

NO_GRADIENT(ldl_solve, "packed factors are not differentiated; solve has a gradient");

}  // namespace anymps
