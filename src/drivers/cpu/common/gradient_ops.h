// SPDX-License-Identifier: Apache-2.0
// Vector functions over contiguous runs of f32 or f64: the inside of normalizations that train and
// of their gradients, and of softmax's. As in row_ops.h, sums are for runs of a few thousand
// elements; longer ones are put together in double by the caller. A result may be one of the inputs.
#pragma once

#include <cstddef>

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
  void (*add)(const A* x, A* sum, size_t n);  // sum += x
  void (*add_centered)(const A* x, const A* mean, A* sum, size_t n);
  void (*add_sums)(const A* dy, const A* x, const A* mean, A* sum, A* moment, size_t n);
  void (*affine_each)(const A* x, const A* mean, const A* scale, const A* shift, A* y, size_t n);
  void (*combine_each)(const A* dy, const A* x, const A* mean, const A* a, const A* b, const A* c,
                       A* dx, size_t n);

  void (*add_products)(const A* x, const A* y, A* sum, size_t n);  // sum += x * y
  // dx = (dy - dot) * y, with one dot or one for each element
  void (*softmax_back)(const A* dy, const A* y, A dot, A* dx, size_t n);
  void (*softmax_back_each)(const A* dy, const A* y, const A* dot, A* dx, size_t n);
  // dx = dy - exp(y) * sum
  void (*log_softmax_back)(const A* dy, const A* y, A sum, A* dx, size_t n);
  void (*log_softmax_back_each)(const A* dy, const A* y, const A* sum, A* dx, size_t n);
};

template <typename A>
const GradientOps<A>& gradient_ops();
template <>
const GradientOps<float>& gradient_ops<float>();
template <>
const GradientOps<double>& gradient_ops<double>();

}  // namespace anymps::cpu
