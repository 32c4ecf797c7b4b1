// SPDX-License-Identifier: Apache-2.0
// Convolution and normalization of torch.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

Values convolution(KernelArguments& c) {
  Value *x = c.tensor(0), *w = c.tensor(1), *bias = c.maybe_tensor(2);
  const int64_t rank = c.rank(x);
  c.check(rank >= 3 && c.rank(w) == rank, "the input has rank {}, the weights {}", rank, c.rank(w));
  const size_t spatial = place(rank - 2);
  NamedAttrs attrs = {{"strides", spread(c, c.ints(3), spatial, "stride")},
                      {"pads", twice(spread(c, c.ints(4), spatial, "padding"))},
                      {"dilations", spread(c, c.ints(5), spatial, "dilation")},
                      {"groups", c.i(8)}};
  if (!c.b(6)) return {c.add("conv", {x, w, bias}, attrs)};
  attrs.emplace_back("output_padding", spread(c, c.ints(7), spatial, "output_padding"));
  return {c.add("conv_transpose", {x, w, bias}, attrs)};
}

// A vector of the channels, axis 1 of x.
Value* per_channel(KernelArguments& c, Value* vector, const Value* x) {
  c.check(c.rank(x) >= 2, "the input has rank {}, and no channels", c.rank(x));
  Ints shape(place(c.rank(x)), 1);
  shape[1] = -1;
  return reshape(c, vector, shape);
}

Value* none_of(KernelArguments& c, size_t result) {
  return c.add("fill", {}, {{"shape", Ints{0}}, {"dtype", c.out(result)}});
}

// Normalization by given statistics; eps is argument `eps`.
Value* normalized(KernelArguments& c, Value* mean, Value* variance, size_t eps) {
  Value *x = c.tensor(0), *weight = c.maybe_tensor(1), *bias = c.maybe_tensor(2);
  const DType wide = wide_dtype(x->dtype());
  const auto as_wide = [&](Value* value) { return value ? c.cast(value, wide) : nullptr; };
  return c.add("batch_norm",
               {c.cast(x, wide), as_wide(mean), as_wide(variance), as_wide(weight), as_wide(bias)},
               {{"axis", 1}, {"epsilon", c.f(eps)}});
}

// The saved statistics, for a gradient, are empty without training.
Values batch_norm_no_training(KernelArguments& c) {
  return {normalized(c, c.tensor(3), c.tensor(4), 6), none_of(c, 1), none_of(c, 2)};
}

Values batch_norm(KernelArguments& c) {
  if (c.b(5)) c.unsupported("training, which would change the running statistics");
  Value *mean = c.tensor(3), *variance = c.tensor(4);
  return {normalized(c, mean, variance, 7), none_of(c, 1), none_of(c, 2), mean, variance};
}

// By the statistics of the batch itself.
Values batch_norm_no_stats(KernelArguments& c) {
  Value* x = c.tensor(0);
  x = c.cast(x, wide_dtype(x->dtype()));
  c.check(c.rank(x) >= 2, "the input has rank {}", c.rank(x));
  Ints axes = iota(2, c.rank(x));
  axes.insert(axes.begin(), 0);
  const NamedAttrs over = {{"axes", axes}, {"keep_dims", false}};
  Value* mean = c.add("reduce_mean", {x}, over);
  Value* centred = c.add("sub", {x, per_channel(c, mean, x)});
  Value* variance = c.add("reduce_mean", {c.add("square", {centred})}, over);
  Value* inverse = c.add("rsqrt", {with_scalar(c, "add", variance, c.f(5))});
  return {normalized(c, mean, variance, 5), mean, inverse};
}

Values layer_norm(KernelArguments& c) {
  Value *x = c.tensor(0), *weight = c.maybe_tensor(2), *bias = c.maybe_tensor(3);
  const auto axes = std::ssize(c.ints(1));
  const DType wide = wide_dtype(x->dtype());
  const bool narrow = wide != x->dtype();
  const auto as_wide = [&](Value* value) { return value ? c.cast(value, x->dtype()) : nullptr; };
  if (axes == 0 || axes > c.rank(x)) c.unsupported("{} axes of rank {}", axes, c.rank(x));
  Values results = c.add_all("layer_norm", {x, as_wide(weight), as_wide(bias)},
                             {{"axis", -axes}, {"epsilon", c.f(4)}}, narrow ? 1 : 3);
  if (!narrow) return results;
  // Statistics of halves are computed apart, so that they are not rounded to halves.
  Values moments =
      c.add_all("layer_norm", {c.cast(x, wide)}, {{"axis", -axes}, {"epsilon", c.f(4)}}, 3);
  return {results[0], moments[1], moments[2]};
}

// The mean and inverse deviation of each group are [N, groups].
Values group_norm(KernelArguments& c) {
  Value *x = c.tensor(0), *weight = c.maybe_tensor(1), *bias = c.maybe_tensor(2);
  const int64_t groups = c.i(6);
  const double epsilon = c.f(7);
  const auto same = [&](Value* value) { return value ? c.cast(value, x->dtype()) : nullptr; };
  Value* y = c.add("group_norm", {x, same(weight), same(bias)},
                   {{"groups", groups}, {"epsilon", epsilon}});
  if (!c.is_known(3)) return {y, nullptr, nullptr};  // which only a gradient needs
  Value* grouped = reshape(c, c.cast(x, wide_dtype(x->dtype())), {c.i(3), groups, -1});
  const NamedAttrs keep = {{"axes", Ints{2}}}, drop = {{"axes", Ints{2}}, {"keep_dims", false}};
  Value* centred = c.add("sub", {grouped, c.add("reduce_mean", {grouped}, keep)});
  Value* variance = c.add("reduce_mean", {c.add("square", {centred})}, drop);
  return {y, c.add("reduce_mean", {grouped}, drop),
          c.add("rsqrt", {with_scalar(c, "add", variance, epsilon)})};
}

// Windows of an image as columns, or the other way round. An image without a batch is one of one.
Values col2im(KernelArguments& c) {
  Value* x = c.tensor(0);
  const bool batched = c.rank(x) == 3;
  if (!batched) x = unsqueeze(c, x, {0});
  Value* y = c.add("col2im", {x},
                   {{"image", c.ints(1)},
                    {"kernel", spread(c, c.ints(2), 2, "kernel_size")},
                    {"dilations", spread(c, c.ints(3), 2, "dilation")},
                    {"pads", twice(spread(c, c.ints(4), 2, "padding"))},
                    {"strides", spread(c, c.ints(5), 2, "stride")}});
  return {batched ? y : squeeze(c, y, 0)};
}

Values im2col(KernelArguments& c) {
  Value* x = c.tensor(0);
  const bool batched = c.rank(x) == 4;
  if (!batched) x = unsqueeze(c, x, {0});
  Value* y = c.add("im2col", {x},
                   {{"kernel", spread(c, c.ints(1), 2, "kernel_size")},
                    {"dilations", spread(c, c.ints(2), 2, "dilation")},
                    {"pads", twice(spread(c, c.ints(3), 2, "padding"))},
                    {"strides", spread(c, c.ints(4), 2, "stride")}});
  return {batched ? y : squeeze(c, y, 0)};
}

const KernelConverters kAtenNn{
    {"aten::_native_batch_norm_legit.no_stats_out", batch_norm_no_stats},
    {"aten::_native_batch_norm_legit.out", batch_norm, "", {3, 4}},
    {"aten::_native_batch_norm_legit_no_training.out", batch_norm_no_training},
    {"aten::col2im.out", col2im},
    {"aten::convolution.out", convolution},
    {"aten::im2col.out", im2col},
    {"aten::native_group_norm.out", group_norm},
    {"aten::native_layer_norm.out", layer_norm},
};

}  // namespace

}  // namespace anymps::executorch
