// SPDX-License-Identifier: Apache-2.0
// Vector functions over contiguous runs of f32 or f64: the inside of normalizations that train and
// of their gradients, and of softmax's. As in row_ops.h, sums are for runs of a few thousand
// elements; longer ones are put together in double by the caller. A result may be one of the
// inputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/common/typed_ops.h"

namespace anymps::cpu {

template <typename A>
struct GradientOps {
  A (*sum)(const A* x, size_t n);
  A (*dot)(const A* x, const A* y, size_t n);
  A (*sum_centered)(const A* x, A mean, size_t n);  // of (x - mean)^2
  // sums[0] = sum of dy * gamma, sums[1] = sum of dy * gamma * (x - mean). gamma may be null: 1.
  void (*sums)(const A* dy, const A* x, const A* gamma, A mean, A sums[2], size_t n);
  // y = (x - mean) * scale * gamma + beta; null: 1 and 0.
  void (*normalize)(const A* x, A mean, A scale, const A* gamma, const A* beta, A* y, size_t n);
  // y = (x - mean) * scale + shift
  void (*affine)(const A* x, A mean, A scale, A shift, A* y, size_t n);
  // dx = dy * gamma * a + (x - mean) * b + c; gamma may be null: 1.
  void (*combine)(const A* dy, const A* x, const A* gamma, A mean, A a, A b, A c, A* dx, size_t n);
  // dgamma += dy * (x - mean) * scale, dbeta += dy, element by element. Either may be null.
  void (*add_parameters)(const A* dy, const A* x, A mean, A scale, A* dgamma, A* dbeta, size_t n);

  // The same with a mean and factors for each element of the run, where the channels are innermost.
  void (*add)(const A* x, A* sum, size_t n);                               // sum += x
  void (*add_rows)(const A* const* rows, size_t count, A* sum, size_t n);  // the sum of several
  void (*affine_each)(const A* x, const A* mean, const A* scale, const A* shift, A* y, size_t n);
  void (*combine_each)(const A* dy, const A* x, const A* mean, const A* a, const A* b, const A* c,
                       A* dx, size_t n);

  // Sums over rows that are `stride` apart, for each of n columns.
  void (*column_sum)(const A* x, int64_t stride, size_t rows, A* sum, size_t n);
  void (*column_dot)(const A* x, const A* y, int64_t stride, size_t rows, A* sum, size_t n);
  void (*column_centered)(const A* x, const A* mean, int64_t stride, size_t rows, A* sum, size_t n);
  // sum of dy, and of dy * (x - mean)
  void (*column_sums)(const A* dy, const A* x, const A* mean, int64_t stride, size_t rows, A* sum,
                      A* moment, size_t n);

  // dx = (dy - dot) * y, with one dot or one for each element
  void (*softmax_back)(const A* dy, const A* y, A dot, A* dx, size_t n);
  void (*softmax_back_each)(const A* dy, const A* y, const A* dot, A* dx, size_t n);
  // dx = dy - exp(y) * sum
  void (*log_softmax_back)(const A* dy, const A* y, A sum, A* dx, size_t n);
  void (*log_softmax_back_each)(const A* dy, const A* y, const A* sum, A* dx, size_t n);
  void (*max_each)(const A* x, A* most, size_t n);  // most = max(most, x); a NaN is passed over
  void (*add_exp_each)(const A* x, const A* shift, A* sum, size_t n);  // sum += e^(x - shift)
  // y = e^(x - shift) * factor
  void (*exp_each)(const A* x, const A* shift, const A* factor, A* y, size_t n);

  // combine and add_parameters for kTogether rows at once, which then touch the sums once.
  static constexpr size_t kTogether = 4;
  struct Rows {
    const A *dy[kTogether], *x[kTogether];
    A* dx[kTogether];
    A mean[kTogether], inv_std[kTogether], b[kTogether], c[kTogether];
  };
  void (*combine_rows)(const Rows& rows, const A* gamma, A* dgamma, A* dbeta, size_t n);
};

const TypedOps<GradientOps>& all_gradient_ops();
template <typename A>
const GradientOps<A>& gradient_ops() {
  return all_gradient_ops().template of<A>();
}

}  // namespace anymps::cpu
