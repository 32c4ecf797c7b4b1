// SPDX-License-Identifier: Apache-2.0
// Gradients among torch's core operators, for programs that train. Results that the caller's mask
// does not ask for are left out.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
// groups, output_mask)
Values convolution_backward(KernelArguments& c) {
  Value *gradient = c.tensor(0), *x = c.tensor(1), *w = c.tensor(2);
  const int64_t rank = c.rank(x);
  c.check(rank >= 3, "the input has rank {}", rank);
  const size_t spatial = place(rank - 2);
  const NamedAttrs attrs = {{"strides", spread(c, c.ints(4), spatial, "stride")},
                            {"pads", twice(spread(c, c.ints(5), spatial, "padding"))},
                            {"dilations", spread(c, c.ints(6), spatial, "dilation")},
                            {"groups", c.i(9)}};
  const std::vector<bool> mask = c.bools(10);
  c.check(mask.size() == 3, "output_mask has {} entries", mask.size());
  const auto shape = [&](Value* like) { return c.add("shape", {like}); };
  Values results(3, nullptr);
  if (c.b(7)) {  // the transposed convolution is the gradient of a convolution, and the reverse
    if (mask[0]) results[0] = c.add("conv", {gradient, w}, attrs);
    if (mask[1]) results[1] = c.add("conv_weights_gradient", {x, gradient, shape(w)}, attrs);
  } else {
    if (mask[0]) results[0] = c.add("conv_data_gradient", {gradient, w, shape(x)}, attrs);
    if (mask[1]) results[1] = c.add("conv_weights_gradient", {gradient, x, shape(w)}, attrs);
  }
  Ints axes = iota(2, rank);
  axes.insert(axes.begin(), 0);
  if (mask[2]) results[2] = c.add("reduce_sum", {gradient}, {{"axes", axes}, {"keep_dims", false}});
  return results;
}

// What a normalization's gradients are made of, all of one dtype and shape.
struct Normalization {
  Value *gradient, *normalized, *inverse;
  Value* weight;  // null: 1
};

// dx = inverse * (g - mean(g) - normalized * mean(g * normalized)), g = gradient * weight
Value* input_gradient(KernelArguments& c, const Normalization& n, const Ints& axes) {
  const NamedAttrs over = {{"axes", axes}};
  Value* g = n.weight ? c.add("mul", {n.gradient, n.weight}) : n.gradient;
  Value* mean = c.add("reduce_mean", {g}, over);
  Value* slope = c.add("reduce_mean", {c.add("mul", {g, n.normalized})}, over);
  Value* inner = c.add("sub", {c.add("sub", {g, mean}), c.add("mul", {n.normalized, slope})});
  return c.add("mul", {n.inverse, inner});
}

// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
Values layer_norm_backward(KernelArguments& c) {
  Value *x = c.tensor(1), *weight = c.maybe_tensor(5);
  const DType wide = wide_dtype(x->dtype());
  const int64_t rank = c.rank(x), first = rank - std::ssize(c.ints(2));
  c.check(first >= 0 && first < rank, "{} axes of rank {}", rank - first, rank);
  Normalization n = {c.cast(c.tensor(0), wide), nullptr, c.cast(c.tensor(4), wide),
                     weight ? c.cast(weight, wide) : nullptr};
  Value* centred = c.add("sub", {c.cast(x, wide), c.cast(c.tensor(3), wide)});
  n.normalized = c.add("mul", {centred, n.inverse});
  const std::vector<bool> mask = c.bools(7);
  c.check(mask.size() == 3, "output_mask has {} entries", mask.size());
  const auto over_batch = [&](Value* y) {
    if (first == 0) return y;
    return c.add("reduce_sum", {y}, {{"axes", iota(0, first)}, {"keep_dims", false}});
  };
  Values results(3, nullptr);
  if (mask[0]) results[0] = input_gradient(c, n, iota(first, rank));
  if (mask[1]) results[1] = over_batch(c.add("mul", {n.gradient, n.normalized}));
  if (mask[2]) results[2] = over_batch(n.gradient);
  return results;
}

// (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask); the statistics are
// [N, group].
Values group_norm_backward(KernelArguments& c) {
  Value *x = c.tensor(1), *weight = c.maybe_tensor(4);
  const DType wide = wide_dtype(x->dtype());
  const int64_t images = c.i(5), channels = c.i(6), pixels = c.i(7), groups = c.i(8);
  c.check(groups > 0 && channels % groups == 0, "{} channels in {} groups", channels, groups);
  const int64_t each = channels / groups;
  const auto as_groups = [&](Value* y, const Ints& shape) {
    return reshape(c, c.cast(y, wide), shape);
  };
  const Ints full = {images, groups, each, pixels}, stats = {images, groups, 1, 1};
  Normalization n = {as_groups(c.tensor(0), full), nullptr, as_groups(c.tensor(3), stats),
                     weight ? as_groups(weight, {1, groups, each, 1}) : nullptr};
  Value* centred = c.add("sub", {as_groups(x, full), as_groups(c.tensor(2), stats)});
  n.normalized = c.add("mul", {centred, n.inverse});
  const std::vector<bool> mask = c.bools(9);
  c.check(mask.size() == 3, "output_mask has {} entries", mask.size());
  const auto per_channel = [&](Value* y) {
    return reshape(c, c.add("reduce_sum", {y}, {{"axes", Ints{0, 3}}}), {channels});
  };
  Values results(3, nullptr);
  if (mask[0])
    results[0] = c.add("reshape", {input_gradient(c, n, {2, 3}), c.add("shape", {x})},
                       {{"allow_zero", true}});
  if (mask[1]) results[1] = per_channel(c.add("mul", {n.gradient, n.normalized}));
  if (mask[2]) results[2] = per_channel(n.gradient);
  return results;
}

// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Values embedding_dense_backward(KernelArguments& c) {
  Value *gradient = c.tensor(0), *flat = reshape(c, c.cast(c.tensor(1), DType::kI64), {-1});
  const int64_t padding = c.i(3);
  if (c.b(4)) c.unsupported("gradients that are scaled by how often an index comes");
  const int64_t rows = c.i(2), width = known_extent(c, gradient, -1);
  Value* updates = reshape(c, c.cast(gradient, wide_dtype(gradient->dtype())), {-1, width});
  if (padding >= 0) {
    Value* used = c.add("not_equal", {flat, c.integer(padding, DType::kI64)});
    updates = c.add("where", {unsqueeze(c, used, {1}), updates, c.scalar_like(updates, 0)});
  }
  return {c.add("scatter", {updates, flat},
                {{"shape", Ints{rows, width}}, {"mode", "add"}, {"axis", 0}})};
}

const KernelConverters kAtenBackward{
    {"aten::convolution_backward.out", convolution_backward},
    {"aten::embedding_dense_backward.out", embedding_dense_backward},
    {"aten::native_group_norm_backward.out", group_norm_backward},
    {"aten::native_layer_norm_backward.out", layer_norm_backward},
};

}  // namespace

}  // namespace anymps::executorch
