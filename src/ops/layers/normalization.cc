// SPDX-License-Identifier: Apache-2.0
// Normalization: by given statistics (batch_norm) or by those of the input itself.
#include "ops/expect.h"

namespace anymps {

namespace {

Dim channels_of(const InferContext& ctx) {
  ctx.check(ctx.rank(0) >= 2, "x has shape {}, must have a batch and a channel axis",
            to_string(ctx.shape(0)));
  return ctx.shape(0)[1];
}

void check_epsilon(const InferContext& ctx) {
  ctx.check(ctx.attrs.f("epsilon") >= 0, "epsilon is {}, must not be negative",
            ctx.attrs.f("epsilon"));
}

void infer_batch_norm(InferContext& ctx) {
  check_epsilon(ctx);
  const Dim channels = ctx.shape(0)[ctx.axis("axis", 0)];
  for (size_t i = 1; i <= 4; ++i) expect_shape(ctx, i, {channels});
  ctx.set(0, ctx.shape(0));
}

// Statistics over the axes from `axis` on; gamma and beta broadcast to x.
void infer_trailing_norm(InferContext& ctx) {
  check_epsilon(ctx);
  const size_t axis = ctx.axis("axis", 0);
  const Dims& x = ctx.shape(0);
  for (size_t i = 1; i < ctx.op.inputs.size(); ++i) expect_broadcast(ctx, i, x);
  Dims statistics = x;
  for (size_t i = axis; i < x.size(); ++i) statistics[i] = 1;
  for (size_t i = 1; i < ctx.output_count(); ++i) ctx.set(i, statistics);
  ctx.set(0, x);
}

// The channels of what is normalized in each image.
Dim channels_behind_batch(const InferContext& ctx) {
  channels_of(ctx);
  const size_t axis = ctx.axis("axis", 0);
  ctx.check(axis >= 1, "axis is {}, which is the batch", ctx.attrs.i("axis"));
  return ctx.shape(0)[axis];
}

void infer_channel_norm(InferContext& ctx) {
  check_epsilon(ctx);
  const Dim channels = channels_behind_batch(ctx);
  expect_shape(ctx, 1, {channels});
  expect_shape(ctx, 2, {channels});
  ctx.set(0, ctx.shape(0));
}

void infer_group_norm(InferContext& ctx) {
  const int64_t groups = ctx.attrs.i("groups");
  const Dim channels = channels_behind_batch(ctx);
  ctx.check(groups >= 1, "groups is {}, must be at least 1", groups);
  ctx.check(!channels.known() || channels.value() % groups == 0,
            "{} channels cannot be divided into {} groups", channels.str(), groups);
  infer_channel_norm(ctx);
  for (size_t i = 1; i < ctx.output_count(); ++i) ctx.set(i, {ctx.shape(0)[0], groups});
}

void infer_lrn(InferContext& ctx) {
  channels_of(ctx);
  ctx.axis("axis", 0);
  ctx.check(ctx.attrs.i("size") >= 1, "size is {}, must be at least 1", ctx.attrs.i("size"));
  ctx.set(0, ctx.shape(0));
}

OpWriter& channel_scale(OpWriter& op) {
  return op.optional("gamma", kFloat, "T", "[C]; absent: 1")
      .optional("beta", kFloat, "T", "[C]; absent: 0")
      .output("y");
}

OpWriter& scaled_input(OpWriter& op) {
  return op.input("x", kFloat).optional("gamma", kFloat, "T", "absent: 1");
}

OpWriter& trailing_axes(OpWriter& op) {
  return op.attr("axis", -1, "the first axis that is normalized")
      .attr("epsilon", 1e-5)
      .infer(infer_trailing_norm);
}

// How much work an element is, and how close results are.
auto per_element(double operations) {
  return [operations](OpWriter& op) -> OpWriter& {
    return op
        .cost([operations](const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
          double count = operations;
          for (const int64_t extent : in[0]) count *= static_cast<double>(extent);
          return count;
        })
        .facts(kSums)
        .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-10});
  };
}

}  // namespace

OP(batch_norm)
    .doc("Normalization by given statistics, one of each for every channel.")
    .formula("y = (x - mean) / sqrt(variance + epsilon) * gamma + beta")
    .mps("normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon:name:")
    .input("x", kFloat)
    .input("mean", kFloat, "T", "[C]")
    .input("variance", kFloat, "T", "[C]")
    .with(channel_scale)
    .attr("axis", 1, "the channel axis")
    .attr("epsilon", 1e-5)
    .layout(LayoutRule::kAxis)
    .infer(infer_batch_norm)
    .with(per_element(2))
    .domain("variance", 0.1, 2)
    .sample({"2d", {{2, 3, 5, 7}, {3}, {3}, {3}, {3}}, {}})
    .sample({"no scale", {{2, 3, 5}, {3}, {3}}, {}})
    .sample({"gamma alone", {{2, 4, 6}, {4}, {4}, {4}}, {{"epsilon", 1e-3}}})
    .sample({"beta alone", {{2, 4, 6}, {4}, {4}, {-1}, {4}}, {}})
    .sample({"rank 2", {{7, 19}, {19}, {19}, {19}, {19}}, {}})
    .sample({"last axis", {{2, 5, 6, 9}, {9}, {9}, {9}, {9}}, {{"axis", -1}}})
    .sample({"3d", {{1, 8, 3, 4, 5}, {8}, {8}, {8}, {8}}, {}})
    .sample({"wide", {{2, 64, 14, 14}, {64}, {64}, {64}, {64}}, {}})
    .sample({"empty batch", {{0, 3, 4, 4}, {3}, {3}, {3}, {3}}, {}});

OP(layer_norm)
    .doc(
        "Normalization over the axes from `axis` on, by their own mean and variance, then a scale "
        "and a shift that broadcast to x. The mean and the inverse deviation, of x's shape with "
        "those axes of extent 1, are outputs if asked for.")
    .formula("y = (x - mean) * inv_std * gamma + beta, inv_std = 1 / sqrt(var + epsilon)")
    .with(scaled_input)
    .optional("beta", kFloat, "T", "absent: 0")
    .output("y")
    .by_product("mean")
    .by_product("inv_std")
    .with(trailing_axes)
    .with(per_element(8))
    .sample({"last axis", {{4, 7, 32}, {32}, {32}}, {}})
    .sample({"no scale", {{5, 19}}, {}})
    .sample({"gamma alone", {{3, 5, 16}, {16}}, {{"epsilon", 1e-12}}})
    .sample({"beta alone", {{3, 5, 16}, {-1}, {16}}, {}})
    .sample({"two axes", {{3, 4, 5}, {4, 5}, {4, 5}}, {{"axis", 1}}})
    .sample({"all axes", {{3, 4, 5}, {3, 4, 5}, {3, 4, 5}}, {{"axis", 0}}})
    .sample({"broadcast gamma", {{2, 3, 4, 5}, {4, 1}, {1}}, {{"axis", -2}}})
    .sample({"rank 1", {{33}, {33}, {33}}, {}})
    .sample({"wide", {{6, 1, 768}, {768}, {768}}, {}})
    .sample({"empty batch", {{0, 4, 8}, {8}, {8}}, {}});

OP(rms_norm)
    .doc(
        "Division by the root of the mean square over the axes from `axis` on, then a scale that "
        "broadcasts to x. The inverse root, of x's shape with those axes of extent 1, is an output "
        "if asked for.")
    .formula("y = x * inv_std * gamma, inv_std = 1 / sqrt(mean(x^2) + epsilon)")
    .with(scaled_input)
    .output("y")
    .by_product("inv_std")
    .with(trailing_axes)
    .with(per_element(5))
    .sample({"last axis", {{4, 7, 32}, {32}}, {}})
    .sample({"no scale", {{5, 19}}, {}})
    .sample({"two axes", {{3, 4, 5}, {4, 5}}, {{"axis", 1}, {"epsilon", 1e-6}}})
    .sample({"all axes", {{3, 4, 5}, {5}}, {{"axis", 0}}})
    .sample({"wide", {{6, 1, 768}, {768}}, {}})
    .sample({"empty batch", {{0, 4, 8}, {8}}, {}});

OP(group_norm)
    .doc(
        "Normalization of groups of channels and all other axes but the first by their own mean "
        "and "
        "variance, then a scale and a shift for each channel. The mean and the inverse deviation "
        "are outputs if asked for.")
    .formula(
        "y = (x - mean[n,g]) * inv_std[n,g] * gamma[c] + beta[c], "
        "inv_std = 1 / sqrt(var + epsilon)")
    .input("x", kFloat, "T", "[N, C, …]")
    .with(channel_scale)
    .by_product("mean", "T", "[N, groups]")
    .by_product("inv_std", "T", "[N, groups]")
    .required("groups", AttrKind::kInt, "divides the number of channels")
    .attr("epsilon", 1e-5)
    .attr("axis", 1, "the channel axis")
    .layout(LayoutRule::kAxis)
    .infer(infer_group_norm)
    .with(per_element(8))
    .sample({"2d", {{2, 6, 5, 4}, {6}, {6}}, {{"groups", 3}}})
    .sample({"one group", {{2, 4, 5}, {4}, {4}}, {{"groups", 1}}})
    .sample({"a group a channel", {{2, 4, 5, 3}, {4}, {4}}, {{"groups", 4}}})
    .sample({"no scale", {{1, 8, 9}}, {{"groups", 2}}})
    .sample({"beta alone", {{1, 8, 9}, {-1}, {8}}, {{"groups", 2}}})
    .sample({"rank 2", {{3, 8}, {8}, {8}}, {{"groups", 2}}})
    .sample({"3d", {{2, 4, 3, 4, 5}, {4}, {4}}, {{"groups", 2}, {"epsilon", 1e-2}}})
    .sample({"wide", {{1, 64, 8, 8}, {64}, {64}}, {{"groups", 32}}})
    .sample({"last axis", {{2, 5, 7, 6}, {6}, {6}}, {{"groups", 3}, {"axis", -1}}})
    .sample({"last axis, wide", {{2, 20, 20, 40}, {40}, {40}}, {{"groups", 5}, {"axis", 3}}})
    .sample({"middle axis", {{2, 3, 6, 5}, {6}, {6}}, {{"groups", 2}, {"axis", 2}}})
    .sample({"empty batch", {{0, 4, 8}, {4}, {4}}, {{"groups", 2}}});

OP(instance_norm)
    .doc(
        "Normalization of each channel of each image by its own mean and variance, then a scale "
        "and "
        "a shift for each channel.")
    .formula("y = (x - mean[n,c]) / sqrt(var[n,c] + epsilon) * gamma[c] + beta[c]")
    .input("x", kFloat, "T", "[N, C, …]")
    .with(channel_scale)
    .attr("epsilon", 1e-5)
    .attr("axis", 1, "the channel axis")
    .layout(LayoutRule::kAxis)
    .infer(infer_channel_norm)
    .with(per_element(8))
    .sample({"2d", {{2, 6, 5, 4}, {6}, {6}}, {}})
    .sample({"1d", {{2, 3, 17}, {3}, {3}}, {{"epsilon", 1e-2}}})
    .sample({"no scale", {{1, 5, 9, 9}}, {}})
    .sample({"beta alone", {{1, 5, 9}, {-1}, {5}}, {}})
    .sample({"3d", {{2, 4, 3, 4, 5}, {4}, {4}}, {}})
    .sample({"last axis", {{2, 9, 7, 5}, {5}, {5}}, {{"axis", -1}}})
    .sample({"last axis, wide", {{1, 33, 31, 37}, {37}, {37}}, {{"axis", 3}}})
    .sample({"last axis, no scale", {{2, 70, 16}}, {{"axis", 2}}})
    .sample({"middle axis", {{2, 3, 6, 5}, {6}, {6}}, {{"axis", 2}}})
    .sample({"empty batch", {{0, 4, 8}, {4}, {4}}, {}});

OP(lrn)
    .doc("Local response normalization across neighbouring channels.")
    .formula(
        "y = x / (bias + alpha / size * sum of x[c']^2)^beta, "
        "c' from c - floor((size-1)/2) to c + ceil((size-1)/2)")
    .onnx("LRN", {"size", "alpha", "beta", "bias"})
    .input("x", kFloat, "T", "[N, C, …]")
    .output("y")
    .required("size", AttrKind::kInt, "channels that are summed")
    .attr("alpha", 1e-4)
    .attr("beta", 0.75)
    .attr("bias", 1.0)
    .attr("axis", 1, "the channel axis")
    .layout(LayoutRule::kAxis)
    .infer(infer_lrn)
    .with(per_element(16))
    .sample({"2d", {{2, 7, 4, 3}}, {{"size", 3}}})
    .sample({"even size",
             {{1, 8, 5, 5}},
             {{"size", 4}, {"alpha", 0.2}, {"beta", 0.5}, {"bias", 2.0}}})
    .sample({"size above channels", {{1, 3, 4}}, {{"size", 9}, {"alpha", 0.1}}})
    .sample({"size 1", {{2, 5}}, {{"size", 1}, {"alpha", 1.0}}})
    .sample({"last axis", {{2, 3, 4, 37}}, {{"size", 5}, {"alpha", 0.3}, {"axis", -1}}})
    .sample({"another power", {{2, 9, 19}}, {{"size", 3}, {"alpha", 0.4}, {"beta", 0.6}}})
    .sample({"empty batch", {{0, 4, 8}}, {{"size", 3}}});

}  // namespace anymps
