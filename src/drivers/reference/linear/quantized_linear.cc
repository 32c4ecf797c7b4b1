// SPDX-License-Identifier: Apache-2.0
// Reference kernels of linear algebra on quantized integers. Sums wrap to 32 bits.
#include <cmath>

#include "drivers/reference/move.h"
#include "ops/layers/window.h"
#include "semantics/fused_activation.h"

namespace anymps {

namespace {

// An operand of a product as matrices: batch axes, rows, columns.
struct IntMatrices {
  View view;
  Shape shape;
  Strides strides;

  IntMatrices(const View& from, bool vector_is_row)
      : view(from), shape(from.shape()), strides(from.strides()) {
    if (shape.size() > 1) return;
    const size_t at = vector_is_row ? 0 : 1;
    shape.insert(at, 1);
    strides.insert(at, 0);
  }
  // Batch axes are aligned at their ends; one of extent 1 is the same for all.
  int64_t at(const Shape& batch, int64_t row, int64_t column) const {
    const size_t own = shape.size() - 2;
    int64_t offset = row * strides[own] + column * strides[own + 1];
    for (size_t i = 0; i < own; ++i)
      if (shape[i] != 1) offset += batch[batch.size() - own + i] * strides[i];
    return load_int(view, offset);
  }
};

// The zero point of a row of a or of a column of b.
class ZeroPoints {
 public:
  ZeroPoints(const ReferenceArgs& args, size_t input, bool rows)
      : present_(args.has(input)), rows_(rows) {
    if (!present_) return;
    view_ = args.in[input];
    one_ = view_.count() == 1;
  }
  int64_t at(const Shape& batch, int64_t row, int64_t column) const {
    if (!present_) return 0;
    if (one_) return load_int(view_, 0);
    if (view_.rank() == 1) return load_int(view_, (rows_ ? row : column) * view_.stride(0));
    return IntMatrices(view_, rows_).at(batch, rows_ ? row : 0, rows_ ? 0 : column);
  }

 private:
  bool present_, rows_, one_ = false;
  View view_;
};

// Calls give(index, sum) for each element of y.
template <typename Give>
void integer_matmul(const ReferenceArgs& args, Give&& give) {
  const IntMatrices a(args.in[0], true), b(args.in[1], false);
  const ZeroPoints a_zero(args, 2, true), b_zero(args, 3, false);
  const View& y = args.out[0];
  const bool row = args.in[0].rank() > 1, column = args.in[1].rank() > 1;
  for_each_index(y.shape(), [&](const Shape& index) {
    const size_t batch_rank = index.size() - row - column;
    const Shape batch(index.begin(), index.begin() + batch_rank);
    const int64_t m = row ? index[batch_rank] : 0, n = column ? index.back() : 0;
    uint32_t sum = 0;
    for (int64_t k = 0; k < a.shape.back(); ++k)
      sum += static_cast<uint32_t>((a.at(batch, m, k) - a_zero.at(batch, m, k)) *
                                   (b.at(batch, k, n) - b_zero.at(batch, k, n)));
    give(index, static_cast<int32_t>(sum));
  });
}

template <typename Give>
void integer_conv(const ReferenceArgs& args, const TensorAxes& axes, Give&& give) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const auto first = x.shape().begin() + static_cast<std::ptrdiff_t>(axes.spatial);
  const Shape spatial(first, first + static_cast<std::ptrdiff_t>(axes.count));
  const Shape kernel(w.shape().begin() + 2, w.shape().end());
  const Window window = resolve_window(args.attrs, spatial, kernel);
  const int64_t groups = args.attrs.i("groups"), per_group = w.extent(1);
  const int64_t x_zero = args.has(2) ? load_int(args.in[2], 0) : 0;
  Shape taps = w.shape();
  taps[0] = 1;
  for_each_index(y.shape(), [&](const Shape& index) {
    const int64_t o = index[axes.channel], group = o / (w.extent(0) / groups);
    int64_t w_zero = 0;
    if (args.has(3))
      w_zero = load_int(args.in[3], args.in[3].count() == 1 ? 0 : o * args.in[3].stride(0));
    uint32_t sum = 0;
    for_each_index(taps, [&](const Shape& tap) {
      Shape from = index, weight = tap;
      from[axes.channel] = group * per_group + tap[1];
      weight[0] = o;
      for (size_t i = 0; i < axes.count; ++i) {
        const size_t at = axes.spatial + i;
        from[at] =
            index[at] * window.strides[i] + tap[2 + i] * window.dilations[i] - window.pads_begin[i];
        if (from[at] < 0 || from[at] >= x.shape()[at]) return;
      }
      sum += static_cast<uint32_t>((load_int(x, x.offset(from)) - x_zero) *
                                   (load_int(w, w.offset(weight)) - w_zero));
    });
    give(index, static_cast<int32_t>(sum));
  });
}

// The end of a fused product, where each step gives an f32.
class ScaledSum {
 public:
  ScaledSum(const ReferenceArgs& args, const char* alpha, const char* beta)
      : args_(args),
        activation_(parse_activation(args.attrs.s("activation"))),
        alpha_(args.attrs.f(alpha)),
        beta_(args.attrs.f(beta)) {}

  void store(const Shape& index, int64_t channel, int32_t sum) const {
    const View& y = args_.out[0];
    float value = static_cast<float>(sum);
    if (args_.has(4)) value *= args_.in[4].count() == 1 ? number(4, 0) : number(4, channel);
    if (args_.has(5)) value += number(5, channel);
    value = static_cast<float>(apply_activation(activation_, value, alpha_, beta_));
    if (y.dtype == DType::kF32) {
      y.at<float>(index) = value;
      return;
    }
    const double zero = args_.has(6) ? static_cast<double>(load_int(args_.in[6], 0)) : 0;
    const double least = y.dtype == DType::kI8 ? -128 : 0, most = least + 255;
    const double step = std::nearbyint(value) + zero;
    const double inside = step != step ? 0 : step < least ? least : step > most ? most : step;
    if (y.dtype == DType::kI8)
      y.at<int8_t>(index) = static_cast<int8_t>(inside);
    else
      y.at<uint8_t>(index) = static_cast<uint8_t>(inside);
  }

 private:
  float number(size_t input, int64_t at) const {
    const View& view = args_.in[input];
    const int64_t step = view.rank() == 0 ? 0 : view.stride(0);
    return reinterpret_cast<const float*>(view.data)[at * step];
  }

  const ReferenceArgs& args_;
  Activation activation_;
  double alpha_, beta_;
};

}  // namespace

REFERENCE(matmul_integer) {
  integer_matmul(args,
                 [&](const Shape& index, int32_t sum) { args.out[0].at<int32_t>(index) = sum; });
}

REFERENCE(conv_integer) {
  integer_conv(args, {1, 2, args.in[0].shape().size() - 2},
               [&](const Shape& index, int32_t sum) { args.out[0].at<int32_t>(index) = sum; });
}

REFERENCE(quantized_matmul) {
  const ScaledSum scaled(args, "act_alpha", "act_beta");
  const bool columns = args.in[1].rank() > 1;
  integer_matmul(args, [&](const Shape& index, int32_t sum) {
    scaled.store(index, columns ? index.back() : 0, sum);
  });
}

REFERENCE(quantized_conv) {
  const ScaledSum scaled(args, "alpha", "beta");
  const TensorAxes axes = tensor_axes(args.attrs, args.in[0].shape().size());
  integer_conv(args, axes, [&](const Shape& index, int32_t sum) {
    scaled.store(index, index[axes.channel], sum);
  });
}

}  // namespace anymps
