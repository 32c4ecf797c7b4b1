// SPDX-License-Identifier: Apache-2.0
// Dense copies of strided tensors in the type that reference kernels accumulate in, so that their
// loops are plain index arithmetic: double for floats, uint64_t for integers (which wrap, whatever
// their width and sign), complex<double> for complex numbers.
#pragma once

#include <complex>
#include <type_traits>
#include <vector>

#include "drivers/reference/reference.h"

namespace anymps {

template <typename A>
inline constexpr DTypeSet kAccumulates = std::is_same_v<A, double>        ? kReal | kBoolean
                                         : std::is_same_v<A, uint64_t>    ? kInt | kBoolean
                                         : std::is_same_v<A, WideComplex> ? kComplex
                                                                          : 0u;

// A view with its axes in another order. Owns what the view points at.
class Permuted {
 public:
  Permuted(const View& view, const std::vector<size_t>& order) : view_(view) {
    for (const size_t axis : order) {
      shape_.push_back(view.shape()[axis]);
      strides_.push_back(view.strides()[axis]);
    }
    view_.dims = &shape_;
    view_.steps = &strides_;
  }
  Permuted(const Permuted&) = delete;
  Permuted& operator=(const Permuted&) = delete;
  const View& view() const { return view_; }
  const Shape& shape() const { return shape_; }

 private:
  View view_;
  Shape shape_;
  Strides strides_;
};

// The order that brings [N, spatial…, C] to [N, C, spatial…], or leaves a tensor as it is.
inline std::vector<size_t> channels_first_order(size_t rank, bool channels_last) {
  std::vector<size_t> order{0};
  if (channels_last) order.push_back(rank - 1);
  for (size_t i = 1; i + (channels_last ? 1 : 0) < rank; ++i) order.push_back(i);
  return order;
}

template <typename A>
std::vector<A> read_dense(const View& view) {
  std::vector<A> dense;
  dense.reserve(view.count());
  dispatch<kAccumulates<A>>(view.dtype, [&]<typename T>() {
    for_each_index(view.shape(), [&](const Shape& index) {
      dense.push_back(static_cast<A>(static_cast<Compute<T>>(view.at<T>(index))));
    });
  });
  return dense;
}

// Input i, or `count` zeros where it is absent.
inline std::vector<double> read_or_zero(const ReferenceArgs& args, size_t i, int64_t count) {
  return args.has(i) ? read_dense<double>(args.in[i]) : std::vector<double>(count, 0.0);
}

// Narrows: floats round to nearest, integers are taken modulo their width.
template <typename A>
void write_dense(const View& view, const std::vector<A>& dense) {
  constexpr DTypeSet kAllowed = std::is_same_v<A, double> ? kFloat : kAccumulates<A> & ~kBoolean;
  dispatch<kAllowed>(view.dtype, [&]<typename T>() {
    size_t next = 0;
    for_each_index(view.shape(), [&](const Shape& index) {
      view.at<T>(index) = static_cast<T>(static_cast<Compute<T>>(dense[next++]));
    });
  });
}

// Calls fn.template operator()<A>() with the accumulator type of a dtype.
template <typename Fn>
void with_accumulator(DType dtype, Fn&& fn) {
  if (is_float(dtype)) return fn.template operator()<double>();
  if (is_int(dtype)) return fn.template operator()<uint64_t>();
  if (is_complex(dtype)) return fn.template operator()<WideComplex>();
  fail(Code::kUnsupported, "[reference] no arithmetic on {}", name(dtype));
}

}  // namespace anymps
