// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, normalization.
#include "formats/onnx/read/ops/layers.h"

#include <numeric>

#include "formats/onnx/read/registry.h"
#include "formats/onnx/schema/auto_pad.h"

namespace anymps::onnx {

namespace {

// The attributes that convolutions and pools share, in the words of the op table.
NamedAttrs window(Call& c, bool transposed = false) {
  const std::string auto_pad = c.s("auto_pad", "NOTSET");
  const AutoPad* known = auto_pad_of_onnx(auto_pad);
  c.check(known != nullptr, "auto_pad '{}' is not known", auto_pad);
  NamedAttrs attrs = {{"auto_pad", known->mode}};
  if (auto strides = c.ints("strides")) attrs.emplace_back("strides", *strides);
  auto pads = c.ints("pads");
  if (pads && auto_pad == "NOTSET") attrs.emplace_back("pads", *pads);
  if (auto dilations = c.ints("dilations")) attrs.emplace_back("dilations", *dilations);
  if (transposed) {
    if (auto padding = c.ints("output_padding")) attrs.emplace_back("output_padding", *padding);
    if (auto shape = c.ints("output_shape")) {
      // The oldest form lists batch and channels too.
      const size_t spatial = c.rank(c.in(0)) - 2;
      if (shape->size() == spatial + 2) shape->erase(shape->begin(), shape->begin() + 2);
      attrs.emplace_back("output_shape", *shape);
    }
  }
  return attrs;
}

NamedAttrs convolution(Call& c, bool transposed) {
  NamedAttrs attrs = window(c, transposed);
  attrs.emplace_back("groups", c.i("group", 1));
  if (auto kernel = c.ints("kernel_shape")) {
    const Dims& w = c.in(1)->shape();
    c.check(c.rank(c.in(1)) == std::ssize(*kernel) + 2,
            "kernel_shape has {} extents, the weights have rank {}", kernel->size(), w.size());
    for (size_t i = 0; i < kernel->size(); ++i)
      c.check(!w[i + 2].known() || w[i + 2].is((*kernel)[i]),
              "kernel_shape is [{}], but the weights are {}", fmt::join(*kernel, ", "),
              to_string(w));
  }
  return attrs;
}

ONNX_READ(Conv) {
  NamedAttrs attrs = convolution(c, false);
  return {c.add("conv", {c.in(0), c.in(1), c.opt(2)}, attrs)};
}

ONNX_READ(ConvTranspose) {
  NamedAttrs attrs = convolution(c, true);
  return {c.add("conv_transpose", {c.in(0), c.in(1), c.opt(2)}, attrs)};
}

NamedAttrs pooling(Call& c) {
  NamedAttrs attrs = window(c);
  auto kernel = c.ints("kernel_shape");
  c.check(kernel.has_value(), "attribute 'kernel_shape' is missing");
  attrs.emplace_back("kernel", *kernel);
  attrs.emplace_back("ceil_mode", c.flag("ceil_mode", false));
  return attrs;
}

ONNX_READ(MaxPool) {
  NamedAttrs attrs = pooling(c);
  if (c.i("storage_order", 0) != 0) attrs.emplace_back("indices", "column_major");
  return c.add_all("max_pool", {c.in(0)}, attrs, c.wants(1) ? 2 : 1);
}

ONNX_READ(AveragePool) {
  NamedAttrs attrs = pooling(c);
  attrs.emplace_back("count_include_pad", c.flag("count_include_pad", false));
  return {c.add("avg_pool", {c.in(0)}, attrs)};
}

ONNX_READ(LpPool) {
  NamedAttrs attrs = pooling(c);
  attrs.emplace_back("p", c.i("p", 2));
  return {c.add("lp_pool", {c.in(0)}, attrs)};
}

Value* over_spatial_axes(Call& c, Value* x, std::string_view reduction) {
  c.check(c.rank(x) >= 2, "the input must have rank 2 at least, it has {}", c.rank(x));
  std::vector<int64_t> axes(c.rank(x) - 2);
  if (axes.empty()) return x;
  std::iota(axes.begin(), axes.end(), 2);
  return c.add(reduction, {x}, {{"axes", axes}, {"keep_dims", true}});
}

ONNX_READ(GlobalAveragePool) { return {over_spatial_axes(c, c.in(0), "reduce_mean")}; }
ONNX_READ(GlobalMaxPool) { return {over_spatial_axes(c, c.in(0), "reduce_max")}; }
ONNX_READ(GlobalLpPool) {
  const int64_t p = c.i("p", 2);
  if (p == 1 || p == 2) return {over_spatial_axes(c, c.in(0), p == 1 ? "reduce_l1" : "reduce_l2")};
  c.check(p > 0, "p is {}", p);
  Value *x = c.in(0), *power = c.scalar_like(x, static_cast<double>(p));
  Value* sum = over_spatial_axes(c, c.add("pow", {c.add("abs", {x}), power}), "reduce_sum");
  return {c.add("pow", {sum, c.scalar_like(x, 1 / static_cast<double>(p))})};
}

// Normalization by the batch's own statistics, which also move the running ones along.
Values batch_norm_in_training(Call& c, Value* x, double epsilon) {
  std::vector<int64_t> axes = {0};
  for (int64_t axis = 2; axis < c.rank(x); ++axis) axes.push_back(axis);
  Value *running_mean = c.in(3), *running_variance = c.in(4);
  const DType type = running_mean->dtype();
  const NamedAttrs keep = {{"axes", axes}}, drop = {{"axes", axes}, {"keep_dims", false}};
  Value* wide = is_half(x->dtype()) ? c.cast(x, DType::kF32) : x;
  Value* centred = c.add("sub", {wide, c.add("reduce_mean", {wide}, keep)});
  Value* mean = c.add("reduce_mean", {wide}, drop);
  Value* variance = c.add("reduce_mean", {c.add("square", {centred})}, drop);
  const double momentum = c.f("momentum", 0.9);
  const auto moved = [&](Value* running, Value* now) {
    Value* sum = c.add("add", {c.add("mul", {running, c.scalar_like(running, momentum)}),
                               c.add("mul", {now, c.scalar_like(now, 1 - momentum)})});
    return sum;
  };
  Value* saved_mean = c.cast(mean, type);
  Value* saved_variance = c.cast(variance, type);
  Value* y =
      c.add("batch_norm",
            {wide, mean, variance, c.cast(c.in(1), wide->dtype()), c.cast(c.in(2), wide->dtype())},
            {{"axis", 1}, {"epsilon", epsilon}});
  return {c.cast(y, x->dtype()), moved(running_mean, saved_mean),
          moved(running_variance, saved_variance), saved_mean, saved_variance};
}

ONNX_READ(BatchNormalization) {
  Value* x = c.in(0);
  const double epsilon = c.f("epsilon", 1e-5);
  bool training = c.i("training_mode", 0) != 0;
  if (c.opset < 7) training = c.i("is_test", 0) == 0;
  if (c.opset >= 7 && c.opset < 14) training = c.wants(1);
  c.ignore({"momentum"});
  const bool each_element = c.i("spatial", 1) != 1;
  if (training) {
    if (each_element) c.unsupported("training with spatial = 0 is not supported");
    return batch_norm_in_training(c, x, epsilon);
  }
  const DType type = x->dtype();
  Value *scale = c.cast(c.in(1), type), *shift = c.cast(c.in(2), type),
        *mean = c.cast(c.in(3), type), *variance = c.cast(c.in(4), type);
  if (each_element) {
    Value* deviation = c.add("sqrt", {c.add("add", {variance, c.scalar_like(x, epsilon)})});
    Value* centred = c.add("div", {c.add("sub", {x, mean}), deviation});
    return {c.add("add", {c.add("mul", {centred, scale}), shift})};
  }
  return {
      c.add("batch_norm", {x, mean, variance, scale, shift}, {{"axis", 1}, {"epsilon", epsilon}})};
}

ONNX_READ(LayerNormalization) {
  c.ignore({"stash_type"});  // sums are kept in f32 in any case
  const size_t outputs = c.wants(2) ? 3 : c.wants(1) ? 2 : 1;
  Values results =
      c.add_all("layer_norm", {c.in(0), c.in(1), c.opt(2)},
                {{"axis", c.i("axis", -1)}, {"epsilon", c.f("epsilon", 1e-5)}}, outputs);
  for (size_t i = 1; i < results.size(); ++i)
    if (is_half(results[i]->dtype())) results[i] = c.cast(results[i], DType::kF32);
  return results;
}

ONNX_READ(RMSNormalization) {
  c.ignore({"stash_type"});
  // The result has the type of the scale.
  Value *x = c.in(0), *scale = c.in(1);
  const NamedAttrs attrs = {{"axis", c.i("axis", -1)}, {"epsilon", c.f("epsilon", 1e-5)}};
  if (x->dtype() == scale->dtype()) return {c.add("rms_norm", {x, scale}, attrs)};
  const DType wide =
      x->dtype() == DType::kF64 || scale->dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  Value* y = c.add("rms_norm", {c.cast(x, wide), c.cast(scale, wide)}, attrs);
  return {c.cast(y, scale->dtype())};
}

ONNX_READ(InstanceNormalization) {
  return {c.add("instance_norm", {c.in(0), c.in(1), c.in(2)}, {{"epsilon", c.f("epsilon", 1e-5)}})};
}

// Before opset 21 there is one scale for each group, not for each channel.
Value* per_channel(Call& c, Value* x, Value* scale, int64_t groups) {
  if (c.opset >= 21) return scale;
  const Dim channels = c.rank(x) > 1 ? x->shape()[1] : Dim(0);
  if (!channels.known()) c.unsupported("the number of channels must be known");
  c.check(groups > 0 && channels.value() % groups == 0, "{} channels do not split into {} groups",
          channels.value(), groups);
  Value* column = c.add("unsqueeze", {scale}, {{"axes", std::vector<int64_t>{1}}});
  Value* wide = c.add("expand", {column},
                      {{"shape", std::vector<int64_t>{groups, channels.value() / groups}}});
  return c.add("reshape", {wide}, {{"shape", std::vector<int64_t>{-1}}});
}

ONNX_READ(GroupNormalization) {
  c.ignore({"stash_type"});
  const int64_t groups = c.i("num_groups");
  Value* x = c.in(0);
  return {c.add("group_norm",
                {x, per_channel(c, x, c.in(1), groups), per_channel(c, x, c.in(2), groups)},
                {{"groups", groups}, {"epsilon", c.f("epsilon", 1e-5)}})};
}

ONNX_READ(LpNormalization) {
  const int64_t p = c.i("p", 2);
  c.check(p == 1 || p == 2, "p is {}, must be 1 or 2", p);
  Value* x = c.in(0);
  Value* norm = c.add(p == 1 ? "reduce_l1" : "reduce_l2", {x},
                      {{"axes", std::vector<int64_t>{c.i("axis", -1)}}, {"keep_dims", true}});
  // A vector of zeros stays one.
  Value* zero = c.scalar_like(x, 0);
  Value* divisor = c.add("where", {c.add("equal", {norm, zero}), c.scalar_like(x, 1), norm});
  return {c.add("div", {x, divisor})};
}

ONNX_READ(MeanVarianceNormalization) {
  Value* x = c.in(0);
  const std::vector<int64_t> axes = c.ints("axes").value_or(std::vector<int64_t>{0, 2, 3});
  const NamedAttrs over = {{"axes", axes}, {"keep_dims", true}};
  Value* centred = c.add("sub", {x, c.add("reduce_mean", {x}, over)});
  Value* variance = c.add("reduce_mean", {c.add("square", {centred})}, over);
  Value* deviation = c.add("add", {c.add("sqrt", {variance}), c.scalar_like(x, 1e-9)});
  return {c.add("div", {centred, deviation})};
}

ONNX_READ(DeformConv) {
  c.ignore({"kernel_shape"});  // the weights have it
  NamedAttrs attrs = {{"groups", c.i("group", 1)}, {"offset_groups", c.i("offset_group", 1)}};
  for (const char* name : {"strides", "dilations", "pads"})
    if (auto values = c.ints(name)) attrs.emplace_back(name, *values);
  return {c.add("deform_conv", {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4)}, attrs)};
}

// The indices are those of the smallest shape; a larger one is filled up with zeros.
ONNX_READ(MaxUnpool) {
  auto kernel = c.ints("kernel_shape");
  c.check(kernel.has_value(), "attribute 'kernel_shape' is missing");
  NamedAttrs attrs = {{"kernel", *kernel}};
  for (const char* name : {"strides", "pads"})
    if (auto values = c.ints(name)) attrs.emplace_back(name, *values);
  Value* y = c.add("max_unpool", {c.in(0), c.in(1)}, attrs);
  Value* shape = c.opt(2);
  if (!shape) return {y};
  Value* more = c.add("sub", {c.cast(shape, DType::kI64), c.add("shape", {y})});
  Value* none = c.add("mul", {more, c.graph.scalar(DType::kI64, 0)});
  return {c.add("pad", {y, c.add("concat", {none, more}, {{"axis", 0}})})};
}

}  // namespace

NamedAttrs window_attrs(Call& c) { return window(c); }

NamedAttrs convolution_attrs(Call& c) { return convolution(c, false); }

}  // namespace anymps::onnx
