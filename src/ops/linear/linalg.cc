// SPDX-License-Identifier: Apache-2.0
// Linear algebra on the last two axes; those before them count matrices.
#include "ops/linear/matrix_shapes.h"

namespace anymps {

namespace {

void infer_inverse(InferContext& ctx) {
  const MatrixShape x = square_shape(ctx, 0);
  ctx.set(0, ctx.shape(0));
  set_if(ctx, 1, x.batch);
}

void infer_det(InferContext& ctx) { ctx.set(0, square_shape(ctx, 0).batch); }

void infer_solve(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  const bool left = ctx.attrs.b("left");
  if (ctx.op.attr_index("vector") < 0 || !ctx.attrs.b("vector")) {
    const Dims y = solution_shape(ctx, a, 1, left);
    ctx.set(0, y);
    return set_if(ctx, 1, Dims(y.begin(), y.end() - 2));
  }
  const Dims& b = ctx.shape(1);
  ctx.check(!b.empty() && may_equal(b.back(), a.rows), "b {} does not fit matrices of {} rows",
            to_string(b), a.rows.str());
  const Dims batch = broadcast(a.batch, Dims(b.begin(), b.end() - 1), ctx.op.name.c_str());
  ctx.set(0, joined(batch, {known_of(a.rows, b.back())}));
  set_if(ctx, 1, batch);
}

void infer_qr(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0);
  const std::string& mode = ctx.attrs.s("mode");
  const Dim inner = mode == "complete" ? a.rows : min(a.rows, a.columns);
  ctx.set(0, mode == "r" ? Dims{0} : joined(a.batch, {a.rows, inner}));
  set_if(ctx, 1, joined(a.batch, {inner, a.columns}));
}

void infer_svd(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0);
  const bool full = ctx.attrs.b("full_matrices");
  const Dim inner = min(a.rows, a.columns);
  ctx.set(0, joined(a.batch, {a.rows, full ? a.rows : inner}));
  set_if(ctx, 1, real_dtype(ctx.dtype(0)), joined(a.batch, {inner}));
  set_if(ctx, 2, joined(a.batch, {full ? a.columns : inner, a.columns}));
  set_if(ctx, 3, a.batch);
}

void infer_svd_values(InferContext& ctx) {
  const MatrixShape a = matrix_shape(ctx, 0);
  ctx.set(0, real_dtype(ctx.dtype(0)), joined(a.batch, {min(a.rows, a.columns)}));
  set_if(ctx, 1, a.batch);
}

void infer_eigh(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  ctx.set(0, real_dtype(ctx.dtype(0)), joined(a.batch, {a.rows}));
  set_if(ctx, 1, ctx.shape(0));
  set_if(ctx, 2, a.batch);
}

void infer_eig(InferContext& ctx) {
  const MatrixShape a = square_shape(ctx, 0);
  const DType dtype = complex_dtype(ctx.dtype(0));
  ctx.set(0, dtype, joined(a.batch, {a.rows}));
  set_if(ctx, 1, dtype, ctx.shape(0));
  set_if(ctx, 2, a.batch);
}

constexpr const char* kUnique =
    "signs and orders are made unique; false: they are LAPACK's on the CPU, and any elsewhere";

}  // namespace

OP(inverse)
    .doc("The inverse of each matrix. A singular one is an error.")
    .formula("y @ x = 1")
    .mps("inverseOfTensor:name:")
    .input("x", kFloat | kComplex, "T", "[…, n, n]")
    .output("y")
    .by_product("info", "i32", kInfo)
    .infer(infer_inverse)
    .with(cubic_work(2))
    .with(square_samples);

OP(det)
    .doc("The determinant of each matrix.")
    .formula("y = det(x)")
    .onnx("Det")
    .input("x", kFloat | kComplex, "T", "[…, n, n]")
    .output("y", "T", "[…]")
    .infer(infer_det)
    .with(cubic_work(0.7))
    .with(square_samples);

OP(solve)
    .doc("The solution of linear equations. A singular matrix is an error.")
    .formula("a @ y = b; without left y @ a = b")
    .input("a", kFloat | kComplex, "T", "[…, n, n]")
    .input("b", kFloat | kComplex, "T", "[…, n, k], without left […, k, n]; the batches broadcast")
    .output("y")
    .by_product("info", "i32", kInfo)
    .attr("left", true, "a stands left of y")
    .attr("vector", false, "b is […, n] and y is too: vectors")
    .infer(infer_solve)
    .with(cubic_work(0.7))
    .sample({"3", {{3, 3}, {3, 2}}, {}})
    .sample({"batch", {{2, 1, 4, 4}, {3, 4, 1}}, {}})
    .sample({"right", {{2, 4, 4}, {3, 4}}, {{"left", false}}})
    .sample({"vector", {{2, 4, 4}, {4}}, {{"vector", true}}})
    .sample({"row vector", {{11, 11}, {2, 11}}, {{"vector", true}, {"left", false}}})
    .sample({"no columns", {{3, 3}, {3, 0}}, {}})
    .sample({"no rows", {{2, 0, 0}, {0, 3}}, {}})
    .sample({"empty", {{0, 3, 3}, {3, 1}}, {}});

OP(triangular_solve)
    .doc(
        "The solution of linear equations with a triangular matrix, of which only the one half is "
        "read. A 0 on the diagonal is an error.")
    .formula("a @ y = b, or transpose(a) @ y = b; without left y @ a = b")
    .input("a", kFloat | kComplex, "T", "[…, n, n]")
    .input("b", kFloat | kComplex, "T", "[…, n, k], without left […, k, n]; the batches broadcast")
    .output("y")
    .by_product("info", "i32",
                "optional, […]: 0, or where the diagonal is 0, counted from 1. Who asks for it "
                "gets no error but what a division by 0 gives")
    .attr("left", true, "a stands left of y")
    .attr("upper", false)
    .attr("transpose", false)
    .attr("unit_diagonal", false, "the diagonal is taken to be 1")
    .infer(infer_solve)
    .with(cubic_work(1))
    .domain("a", 0.5, 1.5)
    .sample({"lower", {{4, 4}, {4, 2}}, {}})
    .sample({"upper", {{2, 4, 4}, {4, 3}}, {{"upper", true}}})
    .sample({"transposed", {{4, 4}, {2, 4, 1}}, {{"transpose", true}}})
    .sample({"unit",
             {{4, 4}, {4, 1}},
             {{"unit_diagonal", true}, {"upper", true}, {"transpose", true}}})
    .sample({"right", {{4, 4}, {2, 3, 4}}, {{"left", false}}})
    .sample({"right upper transposed",
             {{4, 4}, {3, 4}},
             {{"left", false}, {"upper", true}, {"transpose", true}}})
    .sample({"empty", {{0, 3, 3}, {3, 1}}, {}});

OP(cholesky)
    .doc(
        "The triangular factor of symmetric, or Hermitian, positive definite matrices, of which "
        "only the half is read that the factor fills. Others are an error.")
    .formula("y @ y^H = x; y^H @ y = x for upper")
    .input("x", kFloat | kComplex, "T", "[…, n, n]")
    .output("y")
    .by_product("info", "i32", kInfo)
    .attr("upper", false)
    .infer(infer_inverse)
    .with(cubic_work(0.35))
    .sample({"2", {{2, 2}}, {}, {{0, {4, 2, 2, 3}}}})
    .sample({"upper", {{3, 3}}, {{"upper", true}}, {{0, {9, 1, 2, 0, 7, 3, 0, 0, 8}}}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(qr)
    .doc(
        "An orthogonal (unitary) and an upper triangular factor, whose diagonal is not negative. "
        "Reduced: q has as many columns as are needed; complete: it is square; r: it is empty.")
    .formula("q @ r = x, q^H @ q = 1")
    .input("x", kMatrix, "T", "[…, m, n]")
    .output("q", "T", "[…, m, min(m, n)], or [..., m, m], or [0]")
    .output("r", "T", "[…, min(m, n), n], or [..., m, n]")
    .attr("mode", "reduced", {"reduced", "complete", "r"})
    .attr("unique", true, "false: the diagonal of r has the signs of LAPACK's reflections")
    .infer(infer_qr)
    .with(cubic_work(2))
    .sample({"square", {{3, 3}}, {}})
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"wide batch complete", {{2, 2, 4}}, {{"mode", "complete"}}})
    .sample({"r", {{2, 4, 3}}, {{"mode", "r"}}})
    .sample({"as LAPACK", {{2, 5, 3}}, {{"unique", false}}})
    .sample({"tall complete", {{4, 2}}, {{"mode", "complete"}, {"unique", false}}})
    .sample({"no columns", {{3, 0}}, {{"mode", "complete"}}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(svd)
    .doc(
        "Singular values, falling, and vectors. The leading element, the first of the largest, of "
        "each column of u is positive. full_matrices fills u and vh up to square ones.")
    .formula("u @ diag(s) @ vh = x")
    .input("x", kMatrix, "T", "[…, m, n]")
    .output("u")
    .output("s", "T", "optional; […, min(m, n)], real")
    .output("vh", "T", "optional")
    .by_product("info", "i32", kInfo)
    .attr("full_matrices", false)
    .attr("unique", true, kUnique)
    .infer(infer_svd)
    .with(cubic_work(8))
    .sample({"square", {{3, 3}}, {}})
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"full", {{2, 3, 3}}, {{"full_matrices", true}}})
    .sample({"one", {{1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(svd_values)
    .doc("Singular values alone, falling.")
    .formula("s = svd(x).s")
    .input("x", kMatrix, "T", "[…, m, n]")
    .output("s", "T", "[…, min(m, n)], real")
    .by_product("info", "i32", kInfo)
    .infer(infer_svd_values)
    .with(cubic_work(3))
    .sample({"square", {{3, 3}}, {}})
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"no columns", {{2, 3, 0}}, {}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(eigh)
    .doc(
        "Eigenvalues, rising, and eigenvectors of symmetric, or Hermitian, matrices, of which only "
        "one half is read. The leading element, the first of the largest, of each vector is "
        "positive.")
    .formula("x @ v = v * w")
    .input("x", kMatrix, "T", "[…, n, n]")
    .output("w", "T", "[…, n], real")
    .output("v", "T", "optional; […, n, n]: the columns are the vectors")
    .by_product("info", "i32", kInfo)
    .attr("upper", false, "the half that is read")
    .attr("unique", true, kUnique)
    .infer(infer_eigh)
    .with(cubic_work(9))
    .sample({"lower", {{4, 4}}, {}})
    .sample({"upper", {{2, 3, 3}}, {{"upper", true}}})
    .sample({"one", {{1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(eig)
    .doc(
        "Complex eigenvalues, by rising real and then imaginary parts, and eigenvectors of norm 1 "
        "whose leading element, the first of the largest, is real and positive.")
    .formula("x @ v = v * w")
    .input("x", kMatrix, "T", "[…, n, n]")
    .output("w", "complex T", "[…, n]")
    .output("v", "complex T", "optional; […, n, n]: the columns are the vectors")
    .by_product("info", "i32", kInfo)
    .attr("unique", true, kUnique)
    .infer(infer_eig)
    .with(cubic_work(25))
    .sample({"rotation", {{2, 2}}, {}, {{0, {0, -1, 1, 0}}}})
    .sample({"4", {{4, 4}}, {}})
    .sample({"batch", {{2, 3, 3}}, {}})
    .sample({"one", {{1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(eig_gradient)
    .doc(
        "The gradient of eig to x. The eigenvalues of a matrix must be distinct: at equal ones the "
        "vectors have no slope, and an error says so.")
    .formula("dx = real(v^-H @ (diag(dw) + conj(1 / (w[j] - w[i])) * (v^H @ dv)) @ v^H)")
    .input("x", kPrecise, "T", "[…, n, n]")
    .optional("dw", kComplex, "C", "of w, […, n]; absent: 0")
    .optional("dv", kComplex, "C", "of v, […, n, n]; absent: 0")
    .output("dx")
    .reference_only("rare: nobody has needed it fast")
    .infer([](InferContext& ctx) {
      const MatrixShape a = square_shape(ctx, 0);
      expect_shape(ctx, 1, joined(a.batch, {a.rows}));
      expect_shape(ctx, 2, ctx.shape(0));
      ctx.set(0, ctx.shape(0));
    })
    .with(cubic_work(50))
    .sample({"values", {{4, 4}, {4}}, {}})
    .sample({"vectors", {{2, 3, 3}, {-1}, {2, 3, 3}}, {}})
    .sample({"both", {{3, 3}, {3}, {3, 3}}, {}})
    .sample({"rotation", {{2, 2}, {2}, {2, 2}}, {}, {{0, {0, -1, 1, 0}}}})
    .sample({"one", {{1, 1}, {1}, {1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}, {0, 3}, {0, 3, 3}}, {}});

}  // namespace anymps
