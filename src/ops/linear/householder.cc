// SPDX-License-Identifier: Apache-2.0
// Householder's reflections as LAPACK packs them, and least squares.
#include "ops/gradient_parts.h"
#include "ops/linear/matrix_shapes.h"

namespace anymps {

namespace {

// The number of reflections, at most the number of columns.
Dim reflections(InferContext& ctx, const MatrixShape& a) {
  const Dims& tau = ctx.shape(1);
  ctx.check(!tau.empty() && may_equal(Dims(tau.begin(), tau.end() - 1), a.batch),
            "tau {} must have the batch of a {}", to_string(tau), to_string(ctx.shape(0)));
  ctx.check(!tau.back().known() || !a.columns.known() || tau.back().value() <= a.columns.value(),
            "tau {} has more reflections than a {} has columns", to_string(tau),
            to_string(ctx.shape(0)));
  return tau.back();
}

void infer_householder_product(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0);
  ctx.check(!a.rows.known() || !a.columns.known() || a.rows.value() >= a.columns.value(),
            "a {} must have as many rows as columns, or more", to_string(ctx.shape(0)));
  reflections(ctx, a);
  ctx.set(0, ctx.shape(0));
}

void infer_ormqr(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0), c = matrix_shape(ctx, 2);
  reflections(ctx, a);
  ctx.check(may_equal(a.rows, ctx.attrs.b("left") ? c.rows : c.columns),
            "c {} does not fit a of {} rows", to_string(ctx.shape(2)), a.rows.str());
  ctx.check(may_equal(a.batch, c.batch), "a {} and c {} must have the same batch",
            to_string(ctx.shape(0)), to_string(ctx.shape(2)));
  ctx.set(0, ctx.shape(2));
}

void infer_lstsq(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0), b = matrix_shape(ctx, 1);
  ctx.check(may_equal(a.rows, b.rows), "a {} and b {} must have the same number of rows",
            to_string(ctx.shape(0)), to_string(ctx.shape(1)));
  const Dims batch = broadcast(a.batch, b.batch, "lstsq");
  const DType real = real_dtype(ctx.dtype(0));
  const std::string& driver = ctx.attrs.s("driver");
  const bool values = driver == "gelsd" || driver == "gelss";
  ctx.set(0, joined(batch, {a.columns, b.columns}));
  if (a.rows.known() && a.columns.known())
    set_if(ctx, 1, real, joined(batch, {a.rows.value() > a.columns.value() ? b.columns : Dim(0)}));
  else if (ctx.output_count() > 1)
    ctx.set(1, real, joined(batch, {ctx.fresh("residuals")}));
  set_if(ctx, 2, batch);
  set_if(ctx, 3, real, joined(batch, {values ? min(a.rows, a.columns) : Dim(0)}));
}

}  // namespace

OP(geqrf)
    .doc(
        "The reflections that make a matrix upper triangular, in LAPACK's packed form: r is the "
        "upper triangle of a, the vectors stand below it, each with a 1 in front that is not "
        "stored.")
    .formula("q = product over i of (1 - tau[i] * v[i] @ v[i]^H), q @ r = x")
    .input("x", kMatrix, "T", "[…, m, n]")
    .output("a", "T", "[…, m, n]")
    .output("tau", "T", "optional; […, min(m, n)]")
    .infer(infer_packed)
    .with(cubic_work(1.4))
    .with(square_samples)
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"no columns", {{2, 3, 0}}, {}});

OP(householder_product)
    .doc("The first columns of the product of the reflections that geqrf gives.")
    .formula("y = (product over i of (1 - tau[i] * v[i] @ v[i]^H))[:, :n]")
    .input("a", kMatrix, "T", "[…, m, n] with m >= n: the vectors below the diagonal")
    .input("tau", kMatrix, "T", "[…, k] with k <= n")
    .output("y", "T", "[…, m, n]")
    .infer(infer_householder_product)
    .with(cubic_work(2))
    .sample({"square", {{3, 3}, {3}}, {}})
    .sample({"tall", {{2, 5, 3}, {2, 3}}, {}})
    .sample({"fewer", {{2, 5, 4}, {2, 2}}, {}})
    .sample({"none", {{3, 2}, {0}}, {}})
    .sample({"empty", {{0, 3, 3}, {0, 3}}, {}});

OP(ormqr)
    .doc("Applies the square product q of the reflections that geqrf gives to another matrix.")
    .formula("y = q @ c, or q^H @ c; without left c @ q, or c @ q^H")
    .input("a", kMatrix, "T", "[…, m, k]: the vectors below the diagonal")
    .input("tau", kMatrix, "T", "[…, r] with r <= min(m, k)")
    .input("c", kMatrix, "T", "[…, m, n], without left […, n, m]")
    .output("y", "T", "of c's shape")
    .attr("left", true, "q stands left of c")
    .attr("transpose", false, "q^H instead of q")
    .infer(infer_ormqr)
    .with(cubic_work(4))
    .sample({"left", {{2, 5, 3}, {2, 3}, {2, 5, 2}}, {}})
    .sample({"transposed", {{5, 3}, {3}, {5, 2}}, {{"transpose", true}}})
    .sample({"right", {{5, 3}, {3}, {2, 5}}, {{"left", false}}})
    .sample({"right transposed", {{5, 3}, {2}, {2, 5}}, {{"left", false}, {"transpose", true}}})
    .sample({"none", {{3, 2}, {0}, {3, 4}}, {}})
    .sample({"empty", {{0, 3, 3}, {0, 3}, {0, 3, 2}}, {}});

OP(lstsq)
    .doc(
        "The solution of linear equations whose residuals have the smallest sum of squares, and "
        "of all such the shortest. gels takes the matrices to have full rank, and one that has "
        "not is an error; gelsy, gelsd and gelss take singular values below rcond times the "
        "largest for 0.")
    .formula("minimize |a @ y - b|")
    .input("a", kMatrix, "T", "[…, m, n]")
    .input("b", kMatrix, "T", "[…, m, k]; the batches broadcast")
    .output("y", "T", "[…, n, k]")
    .by_product("residuals", "T",
                "optional; […, k], real: the sums of squares of a @ y - b; […, 0] where m <= n")
    .by_product("rank", "i64", "optional; […]")
    .by_product("singular_values", "T",
                "optional; […, min(m, n)], real, of gelsd and gelss; […, 0] of the others")
    .attr("driver", "gelsy", {"gels", "gelsy", "gelsd", "gelss"}, "LAPACK's routine")
    .attr("rcond", -1.0, "negative: the precision of the dtype times the larger extent")
    .infer(infer_lstsq)
    .with(cubic_work(4))
    .sample({"tall", {{5, 3}, {5, 2}}, {}})
    .sample({"tall gels", {{2, 5, 3}, {5, 2}}, {{"driver", "gels"}}})
    .sample({"wide gels", {{3, 5}, {2, 3, 1}}, {{"driver", "gels"}}})
    .sample({"wide", {{3, 5}, {3, 2}}, {{"driver", "gelsd"}}})
    .sample({"square", {{4, 4}, {4, 1}}, {{"driver", "gelss"}}})
    .sample({"no columns", {{3, 0}, {3, 2}}, {}})
    .sample({"no rows", {{2, 0, 3}, {0, 2}}, {{"driver", "gelsd"}}})
    .sample({"empty", {{0, 3, 3}, {3, 1}}, {}});

NO_GRADIENT(geqrf, "the reflections are not differentiated; qr has a gradient");
NO_GRADIENT(householder_product, "the reflections are not differentiated; qr has a gradient");

NO_GRADIENT(ormqr, "the reflections are not differentiated; qr has a gradient");

// With the pseudoinverse p of a: y = p @ b, and
// dp = -p da p + p p^T da^T (1 - a p) + (1 - p a) da^T p^T p. lstsq applies p, and p^T of a^T.
// Residuals do not change with y, which makes them smallest.
GRADIENT(lstsq) {
  const Term a = ctx.x(0), b = ctx.x(1), y = ctx.y(), dy = ctx.dy_or_zero(0);
  const auto apply = [&](const Term& matrix, const Term& to) {
    return ctx.add("lstsq", {matrix, to}, ctx.attrs().named());
  };
  const Term rest = b - matrix_product(a, y, false, false);
  Term db = apply(ctx.swap_last(a), dy);
  const Term outside = dy - matrix_product(a, db, true, false);
  Term da = matrix_product(rest, apply(a, db), false, true) - matrix_product(db, y, false, true) +
            matrix_product(apply(ctx.swap_last(a), y), outside, false, true);
  const auto asked = [&](size_t i) {
    return i < ctx.output_count() && ctx.dy(i) && !ctx.dy(i).shape().back().is(0);
  };
  if (asked(1)) {
    const Term part = rest * ctx.dy(1).op("unsqueeze", {{"axes", std::vector<int64_t>{-2}}}) * 2;
    db = db + part;
    da = da - matrix_product(part, y, false, true);
  }
  if (asked(3)) {
    const std::vector<Term> svd = ctx.add_all("svd", {a}, {}, 3);
    const Term scaled = svd[0] * ctx.dy(3).op("unsqueeze", {{"axes", std::vector<int64_t>{-2}}});
    da = da + matrix_product(scaled, svd[2], false, false);
  }
  ctx.set(0, da);
  ctx.set(1, db);
}

}  // namespace anymps
