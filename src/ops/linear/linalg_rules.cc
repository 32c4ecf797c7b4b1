// SPDX-License-Identifier: Apache-2.0
// Gradients of linear algebra. Ops that read one half of a symmetric matrix give the gradient to
// that half; the other has none.
#include "ops/gradient_parts.h"

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

Term solved(const Term& a, const Term& b, bool upper, bool transpose) {
  return a.ctx().add("triangular_solve", {a, b}, {{"upper", upper}, {"transpose", transpose}});
}

Term row(const Term& vector) { return vector.op("unsqueeze", {{"axes", Ints{-2}}}); }
Term column(const Term& vector) { return vector.op("unsqueeze", {{"axes", Ints{-1}}}); }

// The first, or all but the first, `count` of one of the last axes.
Term first(const Term& value, int64_t axis, int64_t count) {
  return value.op("slice", {{"starts", Ints{0}}, {"ends", Ints{count}}, {"axes", Ints{axis}}});
}
Term last(const Term& value, int64_t axis, int64_t count) {
  return value.op("slice",
                  {{"starts", Ints{count}}, {"ends", Ints{INT64_MAX}}, {"axes", Ints{axis}}});
}

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

// With m for a or its transpose: m @ y = b gives dm = -db @ y^H, y @ m = b gives -y^H @ db.
COMPLEX_GRADIENT(triangular_solve) {
  const Attrs& attrs = ctx.attrs();
  const bool upper = attrs.b("upper"), transpose = attrs.b("transpose"),
             unit = attrs.b("unit_diagonal"), left = attrs.b("left");
  const Term db = ctx.add(
      "triangular_solve", {conjugated(ctx.x(0)), ctx.dy()},
      {{"upper", upper}, {"transpose", !transpose}, {"unit_diagonal", unit}, {"left", left}});
  if (ctx.wants(0)) {
    const Term y = conjugated(ctx.y());
    Term dm = left ? times(db, y, false, true) : times(y, db, true);
    if (transpose) dm = ctx.swap_last(dm);
    ctx.set(0, -triangle(dm, upper, unit ? (upper ? 1 : -1) : 0));
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
  const bool full = ctx.attrs().b("full_matrices");
  const std::vector<Term> all = ctx.output_count() > 2
                                    ? std::vector<Term>{ctx.y(0), ctx.y(1), ctx.y(2)}
                                    : ctx.add_all("svd", {ctx.x()}, ctx.attrs().named(), 3);
  // Vectors beyond those of the singular values are any that fill a square matrix.
  const auto own = [&](const Term& value, int64_t axis, bool loss) {
    const Dim count = all[1].shape().back(), given = value.shape().end()[axis];
    if (!full || given == count) return value;
    if (!count.known()) ctx.refuse("full matrices of extents that are not known");
    if (loss) ctx.refuse("vectors without a singular value are not determined");
    return first(value, axis, count.value());
  };
  const Term u = own(all[0], -1, ctx.dy(0).operator bool()), s = all[1],
             v = ctx.swap_last(own(all[2], -2, ctx.dy(2).operator bool()));
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

// Of a matrix that is not wide; dq and dr may be empty.
static Term qr_back(GradientContext& ctx, const Term& q, const Term& r, const Term& dq,
                    const Term& dr) {
  Term m;
  if (dr) m = times(r, dr, false, true);
  if (dq) {
    const Term part = times(dq, q, true);
    m = m ? m - part : -part;
  }
  const Term low = triangle(m, false, -1);
  Term b = times(q, low + ctx.swap_last(triangle(m, false)));
  if (dq) b = b + dq;
  return ctx.swap_last(solved(r, ctx.swap_last(b), true, false));
}

GRADIENT(qr) {
  const Dim rows = ctx.x().shape().end()[-2], columns = ctx.x().shape().back();
  if (!rows.known() || !columns.known()) ctx.refuse("matrices of extents that are not known");
  if (ctx.attrs().s("mode") == "r") ctx.refuse("r without q; the reduced mode has one");
  const int64_t m = rows.value(), n = columns.value();
  Term q = ctx.y(0), r = ctx.y(1), dq = ctx.dy(0), dr = ctx.dy(1);
  if (m < n) {
    // The square part on the left makes q; the rest is q @ what stands right in r.
    const Term right = last(r, -1, m), rest = last(ctx.x(), -1, m);
    Term dsquare, dright;
    if (dr) {
      dsquare = first(dr, -1, m);
      dright = last(dr, -1, m);
      const Term part = times(rest, dright, false, true);
      dq = dq ? dq + part : part;
    } else {
      dright = ctx.fill_like(right, 0);
    }
    const Term left = qr_back(ctx, q, first(r, -1, m), dq, dsquare);
    return ctx.set(0, ctx.add("concat", {left, times(q, dright)}, {{"axis", -1}}));
  }
  if (m > n && ctx.attrs().s("mode") == "complete") {
    if (dq) ctx.refuse("columns of q beyond those of x are not determined");
    q = first(q, -1, n);
    r = first(r, -2, n);
    dr = first(dr, -2, n);
  }
  ctx.set(0, qr_back(ctx, q, r, dq, dr));
}

// Of a real matrix; w and v are complex.
COMPLEX_GRADIENT(eig) {
  if (!is_float(ctx.x().dtype())) ctx.refuse("complex matrices");
  if (!ctx.attrs().b("unique")) ctx.refuse("eigenvectors whose signs are not unique");
  ctx.set(0, ctx.add("eig_gradient",
                     {ctx.x(), ctx.dy(0), ctx.output_count() > 1 ? ctx.dy(1) : Term()}));
}

NO_GRADIENT(eig_gradient, "eigenvalues have no second gradient");

COMPLEX_GRADIENT(inverse) {
  const Term y = conjugated(ctx.y());
  ctx.set(0, -times(times(y, ctx.dy(), true), y, false, true));
}

COMPLEX_GRADIENT(det) {
  const Term scale = (ctx.dy() * conjugated(ctx.y())).op("unsqueeze", {{"axes", Ints{-1, -2}}});
  ctx.set(0, scale * conjugated(ctx.swap_last(ctx.x().op("inverse"))));
}

COMPLEX_GRADIENT(solve) {
  const bool left = ctx.attrs().b("left"), vector = ctx.attrs().b("vector");
  const Term db = ctx.add("solve", {conjugated(ctx.swap_last(ctx.x(0))), ctx.dy()},
                          {{"left", left}, {"vector", vector}});
  ctx.set(1, db);
  if (!ctx.wants(0)) return;
  const auto matrix = [&](const Term& value) {
    return !vector ? value : left ? column(value) : row(value);
  };
  const Term d = matrix(db), y = conjugated(matrix(ctx.y()));
  ctx.set(0, -(left ? times(d, y, false, true) : times(y, d, true)));
}

GRADIENT(svd_values) {
  const std::vector<Term> all = ctx.add_all("svd", {ctx.x()}, {}, 3);
  ctx.set(0, times(all[0] * row(ctx.dy()), all[2]));
}

}  // namespace anymps
