// SPDX-License-Identifier: Apache-2.0
// Linear algebra on the last two axes; those before them count matrices.
#include <algorithm>

#include "ops/expect.h"

namespace anymps {

namespace {

struct Parts {
  Dims batch;
  Dim rows, columns;
};

Parts parts(const InferContext& ctx, size_t i) {
  const Dims& shape = ctx.shape(i);
  ctx.check(shape.size() >= 2, "input '{}' has shape {}, must have rank 2 at least",
            ctx.op.inputs[i].name, to_string(shape));
  return {Dims(shape.begin(), shape.end() - 2), shape[shape.size() - 2], shape.back()};
}

Parts square(const InferContext& ctx, size_t i) {
  Parts p = parts(ctx, i);
  ctx.check(may_equal(p.rows, p.columns), "input '{}' has shape {}, its matrices must be square",
            ctx.op.inputs[i].name, to_string(ctx.shape(i)));
  return p;
}

Dims joined(Dims batch, std::initializer_list<Dim> last) {
  batch.insert(batch.end(), last);
  return batch;
}

void infer_square(InferContext& ctx) {
  square(ctx, 0);
  ctx.set(0, ctx.shape(0));
}

void infer_det(InferContext& ctx) { ctx.set(0, square(ctx, 0).batch); }

void infer_solve(InferContext& ctx) {
  const Parts a = square(ctx, 0), b = parts(ctx, 1);
  ctx.check(may_equal(a.rows, b.rows), "a {} and b {} must have the same number of rows",
            to_string(ctx.shape(0)), to_string(ctx.shape(1)));
  ctx.set(0, joined(broadcast(a.batch, b.batch, ctx.op.name.c_str()),
                    {known_of(a.rows, b.rows), b.columns}));
}

void infer_qr(InferContext& ctx) {
  const Parts a = parts(ctx, 0);
  const bool complete = ctx.attrs.s("mode") == "complete";
  const Dim inner = complete ? a.rows : min(a.rows, a.columns);
  ctx.set(0, joined(a.batch, {a.rows, inner}));
  if (ctx.output_count() > 1) ctx.set(1, joined(a.batch, {inner, a.columns}));
}

void infer_svd(InferContext& ctx) {
  const Parts a = parts(ctx, 0);
  const bool full = ctx.attrs.b("full_matrices");
  const Dim inner = min(a.rows, a.columns);
  ctx.set(0, joined(a.batch, {a.rows, full ? a.rows : inner}));
  if (ctx.output_count() > 1) ctx.set(1, joined(a.batch, {inner}));
  if (ctx.output_count() > 2) ctx.set(2, joined(a.batch, {full ? a.columns : inner, a.columns}));
}

void infer_eigh(InferContext& ctx) {
  const Parts a = square(ctx, 0);
  ctx.set(0, joined(a.batch, {a.rows}));
  if (ctx.output_count() > 1) ctx.set(1, ctx.shape(0));
}

void infer_eig(InferContext& ctx) {
  const Parts a = square(ctx, 0);
  ctx.set(0, DType::kC64, joined(a.batch, {a.rows}));
  if (ctx.output_count() > 1) ctx.set(1, DType::kC64, ctx.shape(0));
}

CostFn cubic_cost(double operations) {
  return [operations](const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
    double count = operations;
    for (const int64_t extent : in[0]) count *= static_cast<double>(extent);
    return count *
           static_cast<double>(in[0].empty() ? 1 : std::min(in[0].back(), in[0][in[0].size() - 2]));
  };
}

// A random matrix may be near to a singular one, so results are compared with more slack.
constexpr Tolerance kLinalgTolerance{.f32 = 2e-4, .f16 = 2e-2, .bf16 = 1e-1, .f64 = 1e-9};
const DTypeSet kPrecise = bit(DType::kF32) | bit(DType::kF64);

// So much work for each element and row, and how results are compared.
auto cubic(double operations) {
  return [operations](OpWriter& op) -> OpWriter& {
    return op.cost(cubic_cost(operations)).tolerance(kLinalgTolerance).no_layout_tests();
  };
}

OpWriter& equations(OpWriter& op) {
  return op.input("a", kFloat, "T", "[…, n, n]")
      .input("b", kFloat, "T", "[…, n, k]; the batches broadcast")
      .output("y")
      .infer(infer_solve);
}

OpWriter& square_samples(OpWriter& op) {
  return op.sample({"3", {{3, 3}}, {}})
      .sample({"batch", {{2, 3, 5, 5}}, {}})
      .sample({"one", {{1, 1}}, {}})
      .sample({"empty", {{0, 3, 3}}, {}})
      .sample({"no rows", {{2, 0, 0}}, {}});
}

}  // namespace

OP(inverse)
    .doc("The inverse of each matrix. A singular one is an error.")
    .formula("y @ x = 1")
    .mps("inverseOfTensor:name:")
    .input("x", kFloat, "T", "[…, n, n]")
    .output("y")
    .infer(infer_square)
    .with(cubic(2))
    .with(square_samples);

OP(det)
    .doc("The determinant of each matrix.")
    .formula("y = det(x)")
    .onnx("Det")
    .input("x", kFloat, "T", "[…, n, n]")
    .output("y", "T", "[…]")
    .infer(infer_det)
    .with(cubic(0.7))
    .with(square_samples);

OP(solve)
    .doc("The solution of linear equations. A singular matrix is an error.")
    .formula("a @ y = b")
    .with(equations)
    .with(cubic(0.7))
    .sample({"3", {{3, 3}, {3, 2}}, {}})
    .sample({"batch", {{2, 1, 4, 4}, {3, 4, 1}}, {}})
    .sample({"empty", {{0, 3, 3}, {3, 1}}, {}});

OP(triangular_solve)
    .doc(
        "The solution of linear equations with a triangular matrix, of which only the one half is "
        "read. A 0 on the diagonal is an error.")
    .formula("a @ y = b, or transpose(a) @ y = b")
    .with(equations)
    .attr("upper", false)
    .attr("transpose", false)
    .attr("unit_diagonal", false, "the diagonal is taken to be 1")
    .with(cubic(1))
    .domain("a", 0.5, 1.5)
    .sample({"lower", {{4, 4}, {4, 2}}, {}})
    .sample({"upper", {{2, 4, 4}, {4, 3}}, {{"upper", true}}})
    .sample({"transposed", {{4, 4}, {2, 4, 1}}, {{"transpose", true}}})
    .sample({"unit",
             {{4, 4}, {4, 1}},
             {{"unit_diagonal", true}, {"upper", true}, {"transpose", true}}})
    .sample({"empty", {{0, 3, 3}, {3, 1}}, {}});

OP(cholesky)
    .doc(
        "The triangular factor of symmetric positive definite matrices, of which only the half is "
        "read that the factor fills. Others are an error.")
    .formula("y @ transpose(y) = x; transpose(y) @ y = x for upper")
    .input("x", kFloat, "T", "[…, n, n]")
    .output("y")
    .attr("upper", false)
    .infer(infer_square)
    .with(cubic(0.35))
    .sample({"2", {{2, 2}}, {}, {{0, {4, 2, 2, 3}}}})
    .sample({"upper", {{3, 3}}, {{"upper", true}}, {{0, {9, 1, 2, 0, 7, 3, 0, 0, 8}}}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(qr)
    .doc(
        "An orthogonal and an upper triangular factor, whose diagonal is not negative. Reduced: q "
        "has as many columns as are needed; complete: it is square.")
    .formula("q @ r = x, transpose(q) @ q = 1")
    .input("x", kPrecise, "T", "[…, m, n]")
    .output("q", "T", "[…, m, min(m, n)], or [..., m, m]")
    .output("r", "T", "[…, min(m, n), n], or [..., m, n]")
    .attr("mode", "reduced", {"reduced", "complete"})
    .infer(infer_qr)
    .with(cubic(2))
    .sample({"square", {{3, 3}}, {}})
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"wide batch complete", {{2, 2, 4}}, {{"mode", "complete"}}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(svd)
    .doc(
        "Singular values, falling, and vectors. The leading element, the first of the largest, of "
        "each column of u is positive. full_matrices fills u and vh up to square ones.")
    .formula("u @ diag(s) @ vh = x")
    .input("x", kPrecise, "T", "[…, m, n]")
    .output("u")
    .output("s", "T", "optional; […, min(m, n)]")
    .output("vh", "T", "optional")
    .attr("full_matrices", false)
    .infer(infer_svd)
    .with(cubic(8))
    .sample({"square", {{3, 3}}, {}})
    .sample({"tall", {{2, 5, 3}}, {}})
    .sample({"wide", {{3, 5}}, {}})
    .sample({"full", {{2, 3, 3}}, {{"full_matrices", true}}})
    .sample({"one", {{1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(eigh)
    .doc(
        "Eigenvalues, rising, and eigenvectors of symmetric matrices, of which only one half is "
        "read. The leading element, the first of the largest, of each vector is positive.")
    .formula("x @ v = v * w")
    .input("x", kPrecise, "T", "[…, n, n]")
    .output("w", "T", "[…, n]")
    .output("v", "T", "optional; […, n, n]: the columns are the vectors")
    .attr("upper", false, "the half that is read")
    .infer(infer_eigh)
    .with(cubic(9))
    .sample({"lower", {{4, 4}}, {}})
    .sample({"upper", {{2, 3, 3}}, {{"upper", true}}})
    .sample({"one", {{1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}}, {}});

OP(eig)
    .doc(
        "Complex eigenvalues, by rising real and then imaginary parts, and eigenvectors of norm 1 "
        "whose leading element, the first of the largest, is real and positive.")
    .formula("x @ v = v * w")
    .input("x", kPrecise, "T", "[…, n, n]")
    .output("w", "c64", "[…, n]")
    .output("v", "c64", "optional; […, n, n]: the columns are the vectors")
    .infer(infer_eig)
    .with(cubic(25))
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
    .optional("dw", bit(DType::kC64), "C", "of w, […, n]; absent: 0")
    .optional("dv", bit(DType::kC64), "C", "of v, […, n, n]; absent: 0")
    .output("dx")
    .reference_only("rare: nobody has needed it fast")
    .infer([](InferContext& ctx) {
      const Parts a = square(ctx, 0);
      expect_shape(ctx, 1, joined(a.batch, {a.rows}));
      expect_shape(ctx, 2, ctx.shape(0));
      ctx.set(0, ctx.shape(0));
    })
    .with(cubic(50))
    .sample({"values", {{4, 4}, {4}}, {}})
    .sample({"vectors", {{2, 3, 3}, {-1}, {2, 3, 3}}, {}})
    .sample({"both", {{3, 3}, {3}, {3, 3}}, {}})
    .sample({"rotation", {{2, 2}, {2}, {2, 2}}, {}, {{0, {0, -1, 1, 0}}}})
    .sample({"one", {{1, 1}, {1}, {1, 1}}, {}})
    .sample({"empty", {{0, 3, 3}, {0, 3}, {0, 3, 3}}, {}});

}  // namespace anymps
