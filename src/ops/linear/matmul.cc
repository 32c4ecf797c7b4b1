// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication with NumPy's rules for batches and vectors. Bias, residual and activation
// are part of the op, so that a fused linear layer is not a new op.
#include "ops/expect.h"
#include "ops/gradient_parts.h"
#include "semantics/fused_activation.h"

namespace anymps {

namespace {

// An operand as a matrix [rows, columns] with batch axes before it.
struct Operand {
  Dims batch;
  Dim rows, columns;
};

Operand operand(const InferContext& ctx, size_t i, const char* transpose, bool vector_is_row) {
  const Dims& shape = ctx.shape(i);
  ctx.check(!shape.empty(), "input '{}' is a scalar, must have rank 1 or more",
            ctx.op.inputs[i].name);
  if (shape.size() == 1) return vector_is_row ? Operand{{}, 1, shape[0]} : Operand{{}, shape[0], 1};
  Operand result{Dims(shape.begin(), shape.end() - 2), shape[shape.size() - 2], shape.back()};
  if (ctx.attrs.b(transpose)) std::swap(result.rows, result.columns);
  return result;
}

void infer_matmul(InferContext& ctx) {
  const Operand a = operand(ctx, 0, "transpose_a", true), b = operand(ctx, 1, "transpose_b", false);
  if (!may_equal(a.columns, b.rows)) [[unlikely]]
    ctx.check(false, "cannot multiply a {} by b {}: {} columns, {} rows", to_string(ctx.shape(0)),
              to_string(ctx.shape(1)), a.columns.str(), b.rows.str());
  const Activation activation = parse_activation(ctx.attrs.s("activation"));
  const DType dtype = ctx.dtype(0);
  ctx.check(is_float(dtype) || activation == Activation::kNone ||
                (is_int(dtype) && activation <= Activation::kClamp),
            "activation '{}' needs floats, the inputs are {}", ctx.attrs.s("activation"),
            name(dtype));
  ctx.check(activation != Activation::kClamp || ctx.attrs.f("act_alpha") <= ctx.attrs.f("act_beta"),
            "activation clamp has act_alpha {} above act_beta {}", ctx.attrs.f("act_alpha"),
            ctx.attrs.f("act_beta"));
  ctx.check(!is_int(dtype) || ctx.attrs.f("alpha") == 1, "alpha is {}, must be 1 for integers",
            ctx.attrs.f("alpha"));
  Dims y = broadcast(a.batch, b.batch, "matmul");
  if (ctx.rank(0) > 1) y.push_back(a.rows);
  if (ctx.rank(1) > 1) y.push_back(b.columns);
  expect_broadcast(ctx, 2, y);
  expect_shape(ctx, 3, y);
  ctx.set(0, std::move(y));
}

double matmul_cost(const Attrs& attrs, const std::vector<Shape>& in,
                   const std::vector<Shape>& out) {
  const Shape& a = in[0];
  double count =
      2 * static_cast<double>(a.size() > 1 && attrs.b("transpose_a") ? a[a.size() - 2] : a.back());
  for (const int64_t extent : out[0]) count *= static_cast<double>(extent);
  return count;
}

}  // namespace

OP(matmul)
    .doc(
        "Matrix product with NumPy's rules: batch axes broadcast, a vector is a row on the left "
        "and a column on the right and its axis goes away. Transposing exchanges the last two "
        "axes and leaves vectors alone. Then the scale alpha, bias, residual and activation. "
        "Integers wrap; they take alpha 1 and no activation but relu and clamp.")
    .formula("y = act(alpha * a @ b + bias + residual)")
    .mps("matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:")
    .input("a", kNumber, "T", "[batch…, M, K]")
    .input("b", kNumber, "T", "[batch…, K, N]")
    .optional("bias", kNumber, "T", "broadcasts to y")
    .optional("residual", kNumber, "T", "has y's shape")
    .output("y")
    .attr("transpose_a", false)
    .attr("transpose_b", false)
    .attr("alpha", 1.0, "scale of the product")
    .attr("activation", "none", activation_choices(), activation_doc())
    .attr("act_alpha", 0.0, "alpha of the activation")
    .attr("act_beta", 0.0, "beta of the activation")
    .facts(kProduct)
    .infer(infer_matmul)
    .cost(matmul_cost)
    .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
    .sample({"2d", {{5, 7}, {7, 9}}, {}})
    .sample({"2d bias", {{16, 32}, {32, 24}, {24}}, {}})
    .sample({"transpose_a", {{7, 5}, {7, 9}}, {{"transpose_a", true}}})
    .sample({"transpose_b", {{5, 7}, {9, 7}, {9}}, {{"transpose_b", true}}})
    .sample({"transpose both", {{7, 5}, {9, 7}}, {{"transpose_a", true}, {"transpose_b", true}}})
    .sample({"vector vector", {{19}, {19}}, {}})
    .sample({"vector matrix", {{7}, {7, 5}}, {}})
    .sample({"matrix vector", {{5, 7}, {7}}, {}})
    .sample({"vector batch", {{7}, {3, 7, 5}}, {}})
    .sample({"batch vector", {{3, 5, 7}, {7}}, {}})
    .sample({"batch", {{3, 5, 7}, {3, 7, 4}}, {}})
    .sample({"batch transpose_b", {{2, 3, 5, 8}, {2, 3, 6, 8}}, {{"transpose_b", true}}})
    .sample({"broadcast right", {{2, 3, 5, 7}, {7, 4}, {4}}, {}})
    .sample({"broadcast left", {{5, 7}, {2, 3, 7, 4}}, {}})
    .sample({"broadcast both", {{2, 1, 5, 7}, {3, 7, 4}}, {}})
    .sample({"alpha", {{2, 4, 8}, {2, 8, 4}}, {{"alpha", 0.125}}})
    .sample({"bias column", {{4, 8}, {8, 6}, {4, 1}}, {}})
    .sample({"bias scalar", {{4, 8}, {8, 6}, {}}, {}})
    .sample({"bias matrix", {{4, 8}, {8, 6}, {4, 6}}, {}})
    .sample({"residual", {{2, 4, 8}, {8, 6}, {6}, {2, 4, 6}}, {}})
    .sample({"residual without bias", {{4, 8}, {8, 6}, {-1}, {4, 6}}, {}})
    .sample({"relu", {{4, 8}, {8, 6}, {6}}, {{"activation", "relu"}}})
    .sample({"clamp",
             {{4, 8}, {8, 6}, {6}},
             {{"activation", "clamp"}, {"act_alpha", 0.0}, {"act_beta", 6.0}}})
    .sample({"gelu", {{4, 8}, {8, 6}, {6}}, {{"activation", "gelu"}}})
    .sample({"silu", {{2, 4, 8}, {8, 6}}, {{"activation", "silu"}}})
    .sample({"one row", {{1, 256}, {256, 64}, {64}}, {}})
    .sample({"one column", {{64, 33}, {33, 1}}, {}})
    .sample({"outer", {{17, 1}, {1, 19}}, {}})
    .sample({"square", {{64, 64}, {64, 64}, {64}}, {}})
    .sample({"no inner", {{3, 0}, {0, 4}, {4}}, {}})
    .sample({"no rows", {{0, 5}, {5, 4}}, {}})
    .sample({"empty batch", {{0, 3, 5}, {5, 4}}, {}});

namespace {

// a is [batch…, rows, K] and b one matrix: the batch may be part of the rows.
Term as_matrix(GradientContext& ctx, const Term& value) {
  if (value.rank() == 2) return value;
  return ctx.reshape(value, {-1, ctx.extent(value, value.rank() - 1)});
}

bool has_elements(const Term& value) {
  for (const Dim& extent : value.shape())
    if (!extent.known() || extent.is(0)) return false;
  return true;
}

}  // namespace

COMPLEX_GRADIENT(matmul) {
  if (through_activation(ctx, "act_alpha", "act_beta")) return;
  const Term dy = ctx.dy();
  ctx.set(2, dy);
  ctx.set(3, dy);
  if (!ctx.wants(0) && !ctx.wants(1)) return;
  const bool row = ctx.x(0).rank() == 1, column = ctx.x(1).rank() == 1;
  const bool ta = ctx.attrs().b("transpose_a") && !row,
             tb = ctx.attrs().b("transpose_b") && !column;
  const double alpha = ctx.attrs().f("alpha");
  // Vectors as matrices: a row on the left, a column on the right.
  const Term left_factor = conjugated(ctx.x(0)), right_factor = conjugated(ctx.x(1));
  const Term a = row ? left_factor.op("unsqueeze", {{"axes", Ints{0}}}) : left_factor;
  const Term b = column ? right_factor.op("unsqueeze", {{"axes", Ints{1}}}) : right_factor;
  Term g = dy;
  if (column) g = g.op("unsqueeze", {{"axes", Ints{-1}}});
  if (row) g = g.op("unsqueeze", {{"axes", Ints{-2}}});
  if (ctx.wants(0)) {
    const Term da =
        ta ? matrix_product(b, g, tb, true, alpha) : matrix_product(g, b, false, !tb, alpha);
    ctx.set(0, row ? ctx.reduce_to_shape_of(da, a).op("squeeze", {{"axes", Ints{0}}}) : da);
  }
  if (ctx.wants(1)) {
    const bool one_matrix =
        !ta && b.rank() == 2 && a.rank() > 2 && has_elements(a) && has_elements(g);
    const Term left = one_matrix ? as_matrix(ctx, a) : a,
               right = one_matrix ? as_matrix(ctx, g) : g;
    const Term db = tb ? matrix_product(right, left, true, ta, alpha)
                       : matrix_product(left, right, !ta, false, alpha);
    ctx.set(1, column ? ctx.reduce_to_shape_of(db, b).op("squeeze", {{"axes", Ints{1}}}) : db);
  }
}

}  // namespace anymps
