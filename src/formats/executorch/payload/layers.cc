// SPDX-License-Identifier: Apache-2.0
// Convolution, normalization, matrix products, softmax, means.
#include <algorithm>

#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

// MPSConv. A convolution over one axis has the strides and so on of a 1 x n window.
void Conv2D(NodeCall& c) {
  using F = field::Conv;
  Value *x = c.in(F::kInput1), *w = c.in(F::kInput2), *bias = c.opt(F::kInput3);
  const DType type = c.promoted({x, w});
  const int64_t axes = c.rank(w) - 2;
  if (axes != 1 && axes != 2) c.unsupported("weights of rank {} are not supported", axes + 2);
  const bool batched = c.rank(x) == axes + 2;
  c.check(batched || c.rank(x) == axes + 1, "the weights have rank {}, but the input has rank {}",
          axes + 2, c.rank(x));
  Ints strides = {c.i(F::kStrideY), c.i(F::kStrideX)};
  Ints dilations = {c.i(F::kDilationY), c.i(F::kDilationX)};
  Ints pads = {c.i(F::kTop), c.i(F::kLeft), c.i(F::kBottom), c.i(F::kRight)};
  if (axes == 1) {
    strides.erase(strides.begin());
    dilations.erase(dilations.begin());
    pads = {pads[1], pads[3]};
  }
  if (!batched) x = c.add("unsqueeze", {x}, {{"axes", Ints{0}}});
  Value* y = c.add("conv", {c.as(x, type), c.as(w, type), bias ? c.as(bias, type) : nullptr},
                   {{"strides", strides},
                    {"dilations", dilations},
                    {"pads", pads},
                    {"groups", c.i(F::kGroups)}});
  if (!batched) y = c.add("squeeze", {y}, {{"axes", Ints{0}}});
  c.out(F::kOutput, y);
}

// The second and third output are statistics of a training that does not take place: empty.
void BatchNorm(NodeCall& c) {
  using F = field::BatchNorm;
  Value *x = c.in(F::kInput), *weight = c.opt(F::kWeight), *bias = c.opt(F::kBias),
        *mean = c.in(F::kMean), *variance = c.in(F::kVariance);
  const DType type = x->dtype();
  c.out(F::kOutput1,
        c.add("batch_norm",
              {x, c.as(mean, type), c.as(variance, type), weight ? c.as(weight, type) : nullptr,
               bias ? c.as(bias, type) : nullptr},
              {{"axis", 1}, {"epsilon", c.f(F::kEpsilon)}}));
  for (const FlatField field : {F::kOutput2, F::kOutput3})
    if (c.i(field) != -1 && c.declared_dims(field) == Ints{0})
      c.out_later(field, [&graph = c.graph, type] {
        return graph.constant(Constant::copy(type, {0}, {}));
      });
}

void LayerNorm(NodeCall& c) {
  using F = field::LayerNorm;
  Value *x = c.in(F::kInput), *weight = c.opt(F::kWeight), *bias = c.opt(F::kBias);
  const Ints shape = c.ints(F::kShape);
  const int64_t rank = c.rank(x), first = rank - std::ssize(shape);
  c.check(!shape.empty() && first >= 0, "normalized_shape has {} entries for an input of rank {}",
          shape.size(), rank);
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& extent = x->shape()[static_cast<size_t>(first) + i];
    c.check(!extent.known() || extent.is(shape[i]), "normalized_shape is [{}], the input is {}",
            fmt::join(shape, ", "), to_string(x->shape()));
  }
  const DType type = x->dtype();
  const Values inputs = {x, weight ? c.as(weight, type) : nullptr,
                         bias ? c.as(bias, type) : nullptr};
  const NamedAttrs attrs = {{"axis", first}, {"epsilon", c.f(F::kEpsilon)}};
  c.out(F::kOutput1, c.add("layer_norm", inputs, attrs));
  const auto statistic = [builder = NodeBuilder(c), inputs, attrs](size_t output) {
    return [builder, inputs, attrs, output]() mutable {
      return builder.add_all("layer_norm", inputs, attrs, 3)[output];
    };
  };
  c.out_later(F::kOutput2, statistic(1));
  c.out_later(F::kOutput3, statistic(2));
}

// What a view has laid together: x is [N, last axes…] and was [leading axes…, last axes…].
Value* before_view(const Value* x, size_t last) {
  if (!x->producer || !x->producer->is("reshape") || x->shape().size() != last + 1) return nullptr;
  Value* source = x->producer->input(0);
  if (!source->type.static_shape() || source->shape().size() <= last + 1) return nullptr;
  const bool same =
      std::equal(x->shape().end() - static_cast<std::ptrdiff_t>(last), x->shape().end(),
                 source->shape().end() - static_cast<std::ptrdiff_t>(last));
  return same && all_known(x->shape()) ? source : nullptr;
}

// The exporter has products of two or three axes alone, with views around them. The product of what
// was there before the view goes well with what comes after the next one: an activation, a
// residual, an attention. The two views in between cancel out.
Value* matrix_product(NodeCall& c, Value* a, Value* b, Value* bias, const NamedAttrs& attrs) {
  const bool plain = c.rank(a) == 2 && c.rank(b) == 2 && (!bias || c.rank(bias) <= 1);
  Value *wide_a = nullptr, *wide_b = nullptr;
  if (plain && (wide_a = before_view(a, 1))) wide_b = b;
  if (c.rank(a) == 3 && c.rank(b) == 3 && !bias && (wide_a = before_view(a, 2))) {
    wide_b = before_view(b, 2);
    if (wide_b && !std::equal(wide_a->shape().begin(), wide_a->shape().end() - 2,
                              wide_b->shape().begin(), wide_b->shape().end() - 2))
      wide_b = nullptr;
  }
  if (!wide_a || !wide_b || !all_known(b->shape())) return c.add("matmul", {a, b, bias}, attrs);
  Ints shape;
  for (const Dim& extent : a->shape()) shape.push_back(extent.value());
  shape.back() = b->shape().back().value();
  return c.reshaped(c.add("matmul", {wide_a, wide_b, bias}, attrs), shape);
}

void MatMul(NodeCall& c) {
  using F = field::Binary;
  Value *a = c.in(F::kInput1), *b = c.in(F::kInput2);
  const DType type = c.promoted({a, b});
  c.out(F::kOutput, matrix_product(c, c.as(a, type), c.as(b, type), nullptr, {}));
}

// beta * bias + alpha * a @ b
void Addmm(NodeCall& c) {
  using F = field::Addmm;
  Value *bias = c.in(F::kInput1), *a = c.in(F::kInput2), *b = c.in(F::kInput3);
  const DType type = c.promoted({bias, a, b});
  const double alpha = c.f(F::kAlpha), beta = c.f(F::kBeta);
  bias = beta == 0 ? nullptr : c.as(bias, type);
  if (bias && beta != 1) bias = c.add("mul", {bias, c.as(c.graph.scalar(DType::kF64, beta), type)});
  c.out(F::kOutput, matrix_product(c, c.as(a, type), c.as(b, type), bias, {{"alpha", alpha}}));
}

// A scalar counts as a vector of one.
void softmax_along(NodeCall& c, const char* op) {
  using F = field::Softmax;
  Value* x = c.as_float(c.in(F::kInput), F::kOutput);
  if (c.b(F::kHalfToFloat) && is_half(x->dtype())) x = c.cast(x, DType::kF32);
  if (c.rank(x) == 0) x = c.reshaped(x, {1});
  c.out(F::kOutput, c.add(op, {x}, {{"axis", c.normalize(c.i(F::kDim), c.rank(x))}}));
}

void Softmax(NodeCall& c) { softmax_along(c, "softmax"); }
void LogSoftmax(NodeCall& c) { softmax_along(c, "log_softmax"); }

void Mean(NodeCall& c) {
  using F = field::Mean;
  Value* x = c.as_float(c.in(F::kInput), F::kOutput);
  Ints axes = c.counted(F::kNumDims, F::kDims);
  const int64_t rank = c.rank(x);
  if (rank == 0) return c.out(F::kOutput, x);
  for (int64_t& axis : axes) axis = c.normalize(axis, rank);
  c.out(F::kOutput, c.add("reduce_mean", {x}, {{"axes", axes}, {"keep_dims", c.b(F::kKeepDims)}}));
}

const NodeConverters kMpsNn{
    {"MPSAddmm", Addmm},         {"MPSBatchNorm", BatchNorm},
    {"MPSConv2D", Conv2D},       {"MPSDepthwiseConv2D", Conv2D},
    {"MPSLayerNorm", LayerNorm}, {"MPSLogSoftmax", LogSoftmax},
    {"MPSMatMul", MatMul},       {"MPSMean", Mean},
    {"MPSSoftmax", Softmax},
};

}  // namespace

}  // namespace anymps::executorch
