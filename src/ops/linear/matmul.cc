// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication with NumPy's rules for batches and vectors. Bias, residual and activation
// are part of the op, so that a fused linear layer is no new op.
#include "ops/expect.h"
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

}  // namespace anymps
