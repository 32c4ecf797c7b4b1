// SPDX-License-Identifier: Apache-2.0
// LU factors with partial pivoting in LAPACK's packed form, and what is made of them. Gradients are
// beside the records.
#include "ops/gradient_parts.h"
#include "ops/linear/matrix_shapes.h"

namespace anymps {

namespace {

void infer_lu_unpack(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0);
  const Dim inner = min(a.rows, a.columns);
  expect_shape(ctx, 1, joined(a.batch, {inner}));
  ctx.set(0, joined(a.batch, {a.rows, a.rows}));
  set_if(ctx, 1, joined(a.batch, {a.rows, inner}));
  set_if(ctx, 2, joined(a.batch, {inner, a.columns}));
}

void infer_lu_solve(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  expect_shape(ctx, 1, joined(a.batch, {a.rows}));
  ctx.set(0, solution_shape(ctx, a, 2, ctx.attrs.b("left")));
}

void infer_slogdet(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  ctx.set(0, a.batch);
  set_if(ctx, 1, real_dtype(ctx.dtype(0)), a.batch);
}

using LuInts = std::vector<int64_t>;

}  // namespace

OP(lu_factor)
    .doc(
        "The factors of matrices in LAPACK's packed form: u is the upper triangle of lu, l the "
        "lower one with a diagonal of ones. A singular matrix is an error unless info is asked "
        "for; its u has a 0 on the diagonal.")
    .formula("p @ l @ u = x; row i of x is exchanged with row pivots[i] - 1, for i = 0, 1, ...")
    .input("x", kMatrix, "T", "[…, m, n]")
    .output("lu", "T", "[…, m, n]")
    .output("pivots", "i32", "optional; […, min(m, n)], counted from 1")
    .by_product("info", "i32", "optional, […]: 0, or which pivot is 0, counted from 1")
    .attr("pivot", true, "rows are exchanged so that the largest element of a column is its pivot")
    .infer(infer_packed)
    .with(cubic_work(0.7))
    .with(square_samples)
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"without pivots", {{2, 3, 3}}, {{"pivot", false}}})
    .sample({"no columns", {{2, 3, 0}}, {}});

OP(lu_unpack)
    .doc("The three matrices that lu_factor packs into one.")
    .formula("p @ l @ u = x")
    .input("lu", kMatrix, "T", "[…, m, n]")
    .input("pivots", kIndex, "I", "[…, min(m, n)], counted from 1")
    .output("p", "T", "[…, m, m]")
    .output("l", "T", "[…, m, min(m, n)]")
    .output("u", "T", "[…, min(m, n), n]")
    .reference_only("moves elements once: the factors cost more")
    .infer(infer_lu_unpack)
    .no_layout_tests()
    .sample({"square", {{3, 3}, {3}}, {}, {{1, {3, 3, 3}}}})
    .sample({"tall", {{2, 4, 2}, {2, 2}}, {}, {{1, {2, 4, 1, 2}}}})
    .sample({"wide", {{2, 4}, {2}}, {}, {{1, {2, 2}}}})
    .sample({"empty", {{0, 3, 3}, {0, 3}}, {}, {{1, {}}}});

OP(lu_solve)
    .doc("The solution of linear equations whose matrix lu_factor has factored.")
    .formula("x @ y = b, or x^H @ y = b; without left y @ x = b; x = p @ l @ u")
    .with(factored_equations("lu", "[…, n], counted from 1",
                             "[…, n, k], without left […, k, n]; the batches broadcast"))
    .attr("left", true, "x stands left of y")
    .attr("adjoint", false, "the equations of the conjugate transpose")
    .infer(infer_lu_solve)
    .with(cubic_work(1))
    .sample({"3", {{3, 3}, {3}, {3, 2}}, {}, {{1, {2, 3, 3}}}})
    .sample({"batch", {{2, 1, 4, 4}, {2, 1, 4}, {3, 4, 2}}, {}, {{1, {2, 4, 3, 4, 1, 2, 4, 4}}}})
    .sample({"adjoint", {{3, 3}, {3}, {2, 3, 2}}, {{"adjoint", true}}, {{1, {3, 3, 3}}}})
    .sample({"right", {{3, 3}, {3}, {2, 3}}, {{"left", false}}, {{1, {2, 3, 3}}}})
    .sample({"right adjoint",
             {{3, 3}, {3}, {2, 3}},
             {{"left", false}, {"adjoint", true}},
             {{1, {2, 3, 3}}}})
    .sample({"empty", {{0, 3, 3}, {0, 3}, {3, 1}}, {}, {{1, {}}}});

OP(slogdet)
    .doc(
        "The sign of the determinant, or its direction as a complex number, and the logarithm of "
        "its absolute value: 0 and -inf for a singular matrix.")
    .formula("det(x) = sign * exp(logabsdet)")
    .input("x", kMatrix, "T", "[…, n, n]")
    .output("sign", "T", "[…]")
    .output("logabsdet", "T", "optional; […], real")
    .infer(infer_slogdet)
    .with(cubic_work(0.7))
    .with(square_samples);

// With phi the strictly lower part of l^H dl and the upper part of du u^H: p l^-H phi u^-H.
GRADIENT(lu_factor) {
  const Term x = ctx.x(), dlu = ctx.dy();
  const Dim rows = x.shape().end()[-2], columns = x.shape().back();
  if (!rows.known() || !columns.known() || !(rows == columns))
    ctx.refuse("matrices that are not square");
  if (!ctx.attrs().b("pivot")) ctx.refuse("factors without pivots");
  const std::vector<Term> both = ctx.output_count() > 1
                                     ? std::vector<Term>{ctx.y(0), ctx.y(1)}
                                     : ctx.add_all("lu_factor", {x}, ctx.attrs().named(), 2);
  const Term lu = both[0], p = ctx.add_all("lu_unpack", both, {}, 3)[0];
  const auto triangle = [](const Term& m, bool upper) {
    return m.op("trilu", {{"upper", upper}, {"k", upper ? 0 : -1}});
  };
  const auto solved = [&](const Term& b, bool upper, bool left) {
    return ctx.add(
        "triangular_solve", {lu, b},
        {{"upper", upper}, {"transpose", true}, {"unit_diagonal", !upper}, {"left", left}});
  };
  // l^T dl = dl + (strictly lower l)^T dl
  const Term dl = triangle(dlu, false), du = triangle(dlu, true);
  const Term low = dl + matrix_product(triangle(lu, false), dl, true, false);
  const Term phi =
      triangle(low, false) + triangle(matrix_product(du, triangle(lu, true), false, true), true);
  ctx.set(0, matrix_product(p, solved(solved(phi, false, true), true, false), false, false));
}

GRADIENT(lu_unpack) {
  const Dim rows = ctx.x().shape().end()[-2], columns = ctx.x().shape().back();
  if (!rows.known() || !columns.known() || !(rows == columns))
    ctx.refuse("matrices that are not square");
  Term dx = ctx.fill_like(ctx.x(), 0);
  if (ctx.dy(1)) dx = dx + ctx.dy(1).op("trilu", {{"upper", false}, {"k", -1}});
  if (ctx.dy(2)) dx = dx + ctx.dy(2).op("trilu", {{"upper", true}});
  ctx.set(0, dx);
}

// The gradient dx of x = p @ l @ u gives that of its factors: dl = p^T @ dx @ u^H below the
// diagonal, du = l^H @ p^T @ dx from the diagonal on.
COMPLEX_GRADIENT(lu_solve) {
  const bool left = ctx.attrs().b("left"), adjoint = ctx.attrs().b("adjoint");
  const Term db =
      ctx.add("lu_solve", {ctx.x(0), ctx.x(1), ctx.dy()}, {{"left", left}, {"adjoint", !adjoint}});
  ctx.set(2, db);
  if (!ctx.wants(0)) return;
  const Term y = ctx.y();
  // Of x, or of x^H: -db @ y^H where it stands left of y, else -y^H @ db.
  Term dx = left ? matrix_product(db, conjugated(y), false, true)
                 : matrix_product(conjugated(y), db, true, false);
  if (adjoint) dx = conjugated(ctx.swap_last(dx));
  const std::vector<Term> plu = ctx.add_all("lu_unpack", {ctx.x(0), ctx.x(1)}, {}, 3);
  const Term turned = matrix_product(plu[0], dx, true, false);
  const Term dl = matrix_product(turned, conjugated(plu[2]), false, true),
             du = matrix_product(conjugated(plu[1]), turned, true, false);
  ctx.set(0, -(dl.op("trilu", {{"upper", false}, {"k", -1}}) + du.op("trilu", {{"upper", true}})));
}

GRADIENT(slogdet) {
  if (!ctx.dy(1)) return ctx.set(0, ctx.fill_like(ctx.x(), 0));  // the sign has steps only
  const Term scale = ctx.dy(1).op("unsqueeze", {{"axes", LuInts{-1, -2}}});
  ctx.set(0, scale * ctx.swap_last(ctx.x().op("inverse")));
}

}  // namespace anymps
