// SPDX-License-Identifier: Apache-2.0
// Gradients of linear algebra. Ops that read one half of a symmetric matrix give the gradient to
// that half; the other has none.
#include "ops/gradients/axes.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

Term times(const Term& a, const Term& b, bool transpose_a = false, bool transpose_b = false) {
  return a.ctx().add("matmul", {a, b},
                     {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Term triangle(const Term& value, bool upper, int64_t k = 0) {
  return value.op("trilu", {{"upper", upper}, {"k", k}});
}

Term solved(const Term& a, const Term& b, bool upper, bool transpose, bool unit = false) {
  return a.ctx().add("triangular_solve", {a, b},
                     {{"upper", upper}, {"transpose", transpose}, {"unit_diagonal", unit}});
}

Term row(const Term& vector) { return vector.op("unsqueeze", {{"axes", Ints{-2}}}); }
Term column(const Term& vector) { return vector.op("unsqueeze", {{"axes", Ints{-1}}}); }

// The gradient g of a symmetric matrix for one half of it: pairs of elements are one.
Term onto_half(GradientContext& ctx, const Term& g, bool upper) {
  const Term pairs = g + ctx.swap_last(g);
  return (triangle(pairs, upper) + triangle(pairs, upper, upper ? 1 : -1)) * 0.5;
}

// 1 / (v[j] - v[i]), and 0 where they are equal.
Term gaps(const Term& v) {
  const Term difference = row(v) - column(v), same = difference == 0.0;
  return where(same, 0, 1 / where(same, 1, difference));
}

// m - transpose(m), with m = transpose(a) @ b.
Term twist(GradientContext& ctx, const Term& a, const Term& b) {
  const Term m = times(a, b, true);
  return m - ctx.swap_last(m);
}

}  // namespace

GRADIENT(triangular_solve) {
  const Attrs& attrs = ctx.attrs();
  const bool upper = attrs.b("upper"), transpose = attrs.b("transpose"),
             unit = attrs.b("unit_diagonal");
  const Term db = solved(ctx.x(0), ctx.dy(), upper, !transpose, unit), y = ctx.y();
  if (ctx.wants(0)) {
    const Term da = transpose ? times(y, db, false, true) : times(db, y, false, true);
    ctx.set(0, -triangle(da, upper, unit ? (upper ? 1 : -1) : 0));
  }
  ctx.set(1, db);
}

GRADIENT(cholesky) {
  const bool upper = ctx.attrs().b("upper");
  const Term l = upper ? ctx.swap_last(ctx.y()) : ctx.y();
  const Term dl = upper ? ctx.swap_last(ctx.dy()) : ctx.dy();
  const Term m = times(l, dl, true);
  const Term half = (triangle(m, false) + triangle(m, false, -1)) * 0.5;
  // transpose(l)^-1 @ half @ l^-1
  const Term left = solved(l, half, false, true);
  ctx.set(0, onto_half(ctx, solved(l, ctx.swap_last(left), false, true), upper));
}

GRADIENT(eigh) {
  const std::vector<Term> both = ctx.output_count() > 1
                                     ? std::vector<Term>{ctx.y(0), ctx.y(1)}
                                     : ctx.add_all("eigh", {ctx.x()}, ctx.attrs().named(), 2);
  const Term w = both[0], v = both[1];
  Term g;
  if (ctx.dy(0)) g = times(v * row(ctx.dy(0)), v, false, true);
  if (ctx.dy(1)) {
    const Term inner = gaps(w) * times(v, ctx.dy(1), true);
    const Term part = times(times(v, inner), v, false, true);
    g = g ? g + part : part;
  }
  ctx.set(0, onto_half(ctx, g, ctx.attrs().b("upper")));
}

GRADIENT(svd) {
  if (ctx.attrs().b("full_matrices")) ctx.refuse("full matrices have no gradient");
  const std::vector<Term> all = ctx.output_count() > 2
                                    ? std::vector<Term>{ctx.y(0), ctx.y(1), ctx.y(2)}
                                    : ctx.add_all("svd", {ctx.x()}, ctx.attrs().named(), 3);
  const Term u = all[0], s = all[1], v = ctx.swap_last(all[2]);
  const Term squares = gaps(s * s);
  Term inner;  // u @ inner @ transpose(v), and what lies outside of u's and v's columns
  const auto add = [](Term& sum, const Term& part) { sum = sum ? sum + part : part; };
  Term dx;
  if (ctx.dy(0)) {
    const Term du = ctx.dy(0);
    add(inner, squares * twist(ctx, u, du) * row(s));
    const Term outside = (du - times(u, times(u, du, true))) / row(s);
    add(dx, times(outside, v, false, true));
  }
  if (ctx.dy(2)) {
    const Term dv = ctx.swap_last(ctx.dy(2));
    add(inner, column(s) * (squares * twist(ctx, v, dv)));
    const Term outside = (dv - times(v, times(v, dv, true))) / row(s);
    add(dx, times(u, outside, false, true));
  }
  if (inner) add(dx, times(times(u, inner), v, false, true));
  if (ctx.dy(1)) add(dx, times(u * row(ctx.dy(1)), v, false, true));
  ctx.set(0, dx);
}

GRADIENT(qr) {
  const Term q = ctx.y(0), r = ctx.y(1);
  const Dim rows = ctx.x().shape()[ctx.x().shape().size() - 2], columns = ctx.x().shape().back();
  if (!rows.known() || !columns.known() || rows.value() < columns.value())
    ctx.refuse("matrices that are wider than high have no gradient");
  if (ctx.attrs().s("mode") == "complete" && !(rows == columns))
    ctx.refuse("the complete form has no gradient");
  Term m, b;
  if (ctx.dy(1)) m = times(r, ctx.dy(1), false, true);
  if (ctx.dy(0)) {
    const Term part = times(ctx.dy(0), q, true);
    m = m ? m - part : -part;
  }
  const Term low = triangle(m, false, -1);
  b = times(q, low + ctx.swap_last(triangle(m, false)));
  if (ctx.dy(0)) b = b + ctx.dy(0);
  ctx.set(0, ctx.swap_last(solved(r, ctx.swap_last(b), true, false)));
}

NO_GRADIENT(eig, "eigenvalues of matrices that are not symmetric have none here");

}  // namespace anymps
