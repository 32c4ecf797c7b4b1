// SPDX-License-Identifier: Apache-2.0
// Normalizations as training calls them: batch normalization that returns its statistics, and for
// each normalization the gradients to x, scale and shift at once, from the statistics that were
// kept. Parameters and statistics may be wider than x, as in mixed precision.
#include "ops/expect.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

// What the statistics of a tensor are kept in.
DType statistics_dtype(DType x) { return x == DType::kF64 ? DType::kF64 : DType::kF32; }

// Parameters are of input i's dtype, or of another where it is absent.
DType dtype_or(const InferContext& ctx, size_t i, DType other) {
  return ctx.has(i) ? ctx.dtype(i) : other;
}

void check_norm_epsilon(const InferContext& ctx) {
  ctx.check(ctx.attrs.f("epsilon") >= 0, "epsilon is {}, must not be negative",
            ctx.attrs.f("epsilon"));
}

void infer_batch_norm_training(InferContext& ctx) {
  check_norm_epsilon(ctx);
  const DType kept = statistics_dtype(ctx.dtype(0)),
              running[] = {dtype_or(ctx, 3, kept), dtype_or(ctx, 4, kept)};
  ctx.check(ctx.has(3) == ctx.has(4), "running_mean and running_variance come together");
  if (!ctx.type(0).ranked) {
    ctx.set_unranked(0);
    for (size_t i = 1; i < ctx.output_count(); ++i)
      ctx.set_unranked(i, i < 3 ? kept : running[i - 3]);
    return;
  }
  ctx.check(ctx.rank(0) >= 2, "x has shape {}, must have a batch and a channel axis",
            to_string(ctx.shape(0)));
  const Dims& x = ctx.shape(0);
  const Dim channels = x[tensor_axes(ctx.attrs, x.size()).channel];
  for (size_t i = 1; i < 5; ++i) expect_shape(ctx, i, {channels});
  ctx.set(0, x);
  for (size_t i = 1; i < ctx.output_count(); ++i)
    ctx.set(i, i < 3 ? kept : running[i - 3], {channels});
}

// dx, and the gradients to the parameters, which have the shape of gamma.
void set_gradients(InferContext& ctx, size_t gamma, const Dims& parameter) {
  ctx.set(0, ctx.shape(1));
  const DType dtype = dtype_or(ctx, gamma, statistics_dtype(ctx.dtype(1)));
  for (size_t i = 1; i < ctx.output_count(); ++i) ctx.set(i, dtype, parameter);
}

void infer_batch_norm_gradient(InferContext& ctx) {
  const Dims& x = ctx.shape(1);
  ctx.check(ctx.rank(1) >= 2, "x has shape {}, must have a batch and a channel axis", to_string(x));
  const Dim channels = x[tensor_axes(ctx.attrs, x.size()).channel];
  expect_shape(ctx, 0, x);
  for (size_t i = 2; i < 5; ++i) expect_shape(ctx, i, {channels});
  set_gradients(ctx, 4, {channels});
}

// Of layer_norm, and of rms_norm, which has no mean.
void infer_row_norm_gradient(InferContext& ctx) {
  check_norm_epsilon(ctx);
  const bool centered = ctx.op.name == "layer_norm_gradient";
  const size_t axis = ctx.axis("axis", 1);
  const Dims& x = ctx.shape(1);
  expect_shape(ctx, 0, x);
  Dims statistics = x;
  for (size_t i = axis; i < x.size(); ++i) statistics[i] = 1;
  const size_t gamma = centered ? 4 : 3;
  for (size_t i = 2; i < gamma; ++i) expect_shape(ctx, i, statistics);
  ctx.check(!centered || ctx.has(2) == ctx.has(3), "mean and inv_std come together");
  const Dims parameter(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  expect_shape(ctx, gamma, parameter);
  set_gradients(ctx, gamma, parameter);
}

void infer_group_norm_gradient(InferContext& ctx) {
  check_norm_epsilon(ctx);
  const int64_t groups = ctx.attrs.i("groups");
  ctx.check(ctx.rank(1) >= 2, "x has shape {}, must have a batch and a channel axis",
            to_string(ctx.shape(1)));
  const Dims& x = ctx.shape(1);
  ctx.check(groups >= 1, "groups is {}, must be at least 1", groups);
  ctx.check(!x[1].known() || x[1].value() % groups == 0,
            "{} channels cannot be divided into {} groups", x[1].str(), groups);
  expect_shape(ctx, 0, x);
  expect_shape(ctx, 2, {x[0], groups});
  expect_shape(ctx, 3, {x[0], groups});
  ctx.check(ctx.has(2) == ctx.has(3), "mean and inv_std come together");
  expect_shape(ctx, 4, {x[1]});
  set_gradients(ctx, 4, {x[1]});
}

constexpr Tolerance kTrainingTolerance{.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-9};
const char* const kDyDoc = "the gradient of y; has x's shape";

OpWriter& scale_gradient(OpWriter& op) {
  return op.output("dx").by_product("dgamma", "f32",
                                    "of gamma's dtype, if there is one, else of the statistics'");
}
OpWriter& parameter_gradients(OpWriter& op) {
  return op.with(scale_gradient).by_product("dbeta", "f32", "the same");
}
// Of a normalization by statistics that it gave, or that are computed again; the docs of inputs.
auto own_statistics(const char* x, const char* statistics, const char* gamma) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.input("dy", kFloat, "T", kDyDoc)
        .input("x", kFloat, "T", x)
        .optional("mean", kFloat, "S", statistics)
        .optional("inv_std", kFloat, "S", "the same")
        .optional("gamma", kFloat, "P", gamma)
        .with(parameter_gradients);
  };
}
// Numbers that are near to those of a normalization, and how exact the gradients are.
OpWriter& norm_gradient_tests(OpWriter& op) {
  return op.facts(kSums).domain("inv_std", 0.3, 2).tolerance(kTrainingTolerance);
}
// Of layer_norm and rms_norm.
OpWriter& row_norm_gradient(OpWriter& op) {
  return op.attr("axis", -1, "the first axis that is normalized")
      .attr("epsilon", 1e-5, "where the statistics are computed")
      .infer(infer_row_norm_gradient)
      .with(norm_gradient_tests);
}

}  // namespace

OP(batch_norm_training)
    .doc(
        "Batch normalization by the statistics of x, one of each for every channel, which are "
        "outputs, and the running statistics moved towards them. Statistics are f32, of f64 f64. "
        "Without running statistics the new ones are those of x; of an empty x they stay.")
    .formula(
        "y = (x - mean) * inv_std * gamma + beta, inv_std = 1 / sqrt(variance + epsilon); "
        "new_running = (1 - momentum) * running + momentum * statistic, "
        "the variance times count / (count - 1) if unbiased")
    .input("x", kFloat, "T", "[N, C, …], or [N, …, C] for channels_last")
    .optional("gamma", kFloat, "P", "[C]; absent: 1")
    .optional("beta", kFloat, "P", "[C]; absent: 0")
    .optional("running_mean", kFloat, "P", "[C]")
    .optional("running_variance", kFloat, "P", "[C]")
    .output("y")
    .output("mean", "f32", "[C]")
    .output("inv_std", "f32", "[C]")
    .by_product("new_running_mean", "f32", "[C]")
    .by_product("new_running_variance", "f32", "[C]")
    .attr("momentum", 0.1, "how far the running statistics move")
    .attr("epsilon", 1e-5)
    .attr("unbiased", true, "whether the running variance is")
    .attr("layout", "channels_first", layout_choices())
    .facts(kSums)
    .infer(infer_batch_norm_training)
    .domain("running_variance", 0.1, 2)
    .tolerance(kTrainingTolerance)
    .sample({"2d", {{2, 3, 5, 7}, {3}, {3}, {3}, {3}}, {}})
    .sample({"nothing else", {{4, 3, 5}}, {}})
    .sample({"biased", {{3, 2, 4}, {2}, {2}, {2}, {2}}, {{"unbiased", false}, {"momentum", 0.9}}})
    .sample({"gamma alone", {{2, 4, 6}, {4}}, {{"epsilon", 1e-3}}})
    .sample({"rank 2", {{9, 19}, {19}, {19}, {19}, {19}}, {}})
    .sample({"large planes", {{2, 3, 50, 45}, {3}, {3}, {3}, {3}}, {}})
    .sample({"channels last", {{2, 5, 6, 9}, {9}, {9}, {9}, {9}}, {{"layout", "channels_last"}}})
    .sample({"many rows", {{300, 7}, {7}, {7}, {7}, {7}}, {{"layout", "channels_last"}}})
    .sample({"one element", {{1, 4}, {4}, {4}}, {}})
    .sample({"empty batch", {{0, 3, 4}, {3}, {3}, {3}, {3}}, {}})
    .sample({"no channels", {{2, 0, 4}, {0}, {0}}, {}});

OP(batch_norm_training_gradient)
    .doc(
        "The gradients of batch normalization to x, scale and shift, from the mean and the inverse "
        "deviation that it used: those of x in training, else given ones that do not depend on x.")
    .formula(
        "dgamma = inv_std * sum(dy * (x - mean)); dbeta = sum(dy); "
        "dx = gamma * inv_std * (dy - (dbeta + (x - mean) * inv_std * dgamma) / count); "
        "without training dx = gamma * inv_std * dy")
    .input("dy", kFloat, "T", kDyDoc)
    .input("x", kFloat)
    .input("mean", kFloat, "S", "[C]")
    .input("inv_std", kFloat, "S", "[C]")
    .optional("gamma", kFloat, "P", "[C]; absent: 1")
    .with(parameter_gradients)
    .attr("training", true, "mean and inv_std are those of x")
    .attr("layout", "channels_first", layout_choices())
    .infer(infer_batch_norm_gradient)
    .with(norm_gradient_tests)
    .sample({"2d", {{2, 3, 5, 7}, {2, 3, 5, 7}, {3}, {3}, {3}}, {}})
    .sample({"no gamma", {{4, 3, 5}, {4, 3, 5}, {3}, {3}}, {}})
    .sample({"given", {{4, 3, 5}, {4, 3, 5}, {3}, {3}, {3}}, {{"training", false}}})
    .sample({"rank 2", {{9, 19}, {9, 19}, {19}, {19}, {19}}, {}})
    .sample({"large planes", {{2, 3, 50, 45}, {2, 3, 50, 45}, {3}, {3}, {3}}, {}})
    .sample({"channels last",
             {{2, 5, 6, 9}, {2, 5, 6, 9}, {9}, {9}, {9}},
             {{"layout", "channels_last"}}})
    .sample({"channels last, given",
             {{300, 7}, {300, 7}, {7}, {7}, {7}},
             {{"layout", "channels_last"}, {"training", false}}})
    .sample({"empty batch", {{0, 3, 4}, {0, 3, 4}, {3}, {3}, {3}}, {}});

OP(layer_norm_gradient)
    .doc(
        "The gradients of layer_norm to x, scale and shift, which have the shape of the normalized "
        "axes. Mean and inverse deviation are those that layer_norm gave, or computed again.")
    .formula(
        "dgamma = sum(dy * z), dbeta = sum(dy), z = (x - mean) * inv_std; "
        "dx = inv_std * (dy * gamma - mean(dy * gamma) - z * mean(dy * gamma * z))")
    .with(own_statistics("", "x's shape with the normalized axes of extent 1",
                         "of the shape of the normalized axes; absent: 1"))
    .with(row_norm_gradient)
    .sample({"last axis", {{4, 7, 32}, {4, 7, 32}, {4, 7, 1}, {4, 7, 1}, {32}}, {}})
    .sample({"no scale", {{5, 19}, {5, 19}, {5, 1}, {5, 1}}, {}})
    .sample({"two axes", {{3, 4, 5}, {3, 4, 5}, {3, 1, 1}, {3, 1, 1}, {4, 5}}, {{"axis", 1}}})
    .sample({"all axes", {{3, 4, 5}, {3, 4, 5}, {1, 1, 1}, {1, 1, 1}, {3, 4, 5}}, {{"axis", 0}}})
    .sample({"own statistics", {{6, 40}, {6, 40}, {-1}, {-1}, {40}}, {}})
    .sample({"many rows", {{300, 9}, {300, 9}, {300, 1}, {300, 1}, {9}}, {}})
    .sample({"long rows", {{3, 2500}, {3, 2500}, {3, 1}, {3, 1}, {2500}}, {}})
    .sample({"empty batch", {{0, 4, 8}, {0, 4, 8}, {0, 4, 1}, {0, 4, 1}, {8}}, {}});

OP(rms_norm_gradient)
    .doc(
        "The gradients of rms_norm to x and scale. The inverse root of the mean square is the one "
        "that rms_norm gave, or computed again.")
    .formula(
        "dgamma = sum(dy * z), z = x * inv_std; dx = inv_std * (dy * gamma - z * mean(dy * gamma * "
        "z))")
    .input("dy", kFloat, "T", kDyDoc)
    .input("x", kFloat)
    .optional("inv_std", kFloat, "S", "x's shape with the normalized axes of extent 1")
    .optional("gamma", kFloat, "P", "of the shape of the normalized axes; absent: 1")
    .with(scale_gradient)
    .with(row_norm_gradient)
    .sample({"last axis", {{4, 7, 32}, {4, 7, 32}, {4, 7, 1}, {32}}, {}})
    .sample({"no scale", {{5, 19}, {5, 19}, {5, 1}}, {}})
    .sample({"two axes", {{3, 4, 5}, {3, 4, 5}, {3, 1, 1}, {4, 5}}, {{"axis", 1}}})
    .sample({"own statistics", {{6, 40}, {6, 40}, {-1}, {40}}, {}})
    .sample({"many rows", {{300, 9}, {300, 9}, {300, 1}, {9}}, {}})
    .sample({"empty batch", {{0, 4, 8}, {0, 4, 8}, {0, 4, 1}, {8}}, {}});

OP(group_norm_gradient)
    .doc(
        "The gradients of group_norm to x, scale and shift. Mean and inverse deviation are those "
        "that group_norm gave, or computed again.")
    .formula(
        "dgamma[c] = sum(dy * z), dbeta[c] = sum(dy), z = (x - mean) * inv_std; "
        "dx = inv_std * (dy * gamma - mean(dy * gamma) - z * mean(dy * gamma * z)), "
        "means over a group")
    .with(own_statistics("[N, C, …]", "[N, groups]", "[C]; absent: 1"))
    .required("groups", AttrKind::kInt, "divides the number of channels")
    .attr("epsilon", 1e-5, "where the statistics are computed")
    .infer(infer_group_norm_gradient)
    .with(norm_gradient_tests)
    .sample({"2d", {{2, 6, 5, 4}, {2, 6, 5, 4}, {2, 3}, {2, 3}, {6}}, {{"groups", 3}}})
    .sample({"one group", {{2, 4, 5}, {2, 4, 5}, {2, 1}, {2, 1}, {4}}, {{"groups", 1}}})
    .sample({"no scale", {{1, 8, 9}, {1, 8, 9}, {1, 2}, {1, 2}}, {{"groups", 2}}})
    .sample({"rank 2", {{3, 8}, {3, 8}, {3, 2}, {3, 2}, {8}}, {{"groups", 2}}})
    .sample({"own statistics", {{2, 4, 40}, {2, 4, 40}, {-1}, {-1}, {4}}, {{"groups", 2}}})
    .sample({"large planes", {{1, 4, 1500}, {1, 4, 1500}, {1, 2}, {1, 2}, {4}}, {{"groups", 2}}})
    .sample({"empty batch", {{0, 4, 8}, {0, 4, 8}, {0, 2}, {0, 2}, {4}}, {{"groups", 2}}});

}  // namespace anymps
