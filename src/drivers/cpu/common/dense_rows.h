// SPDX-License-Identifier: Apache-2.0
// Dense memory of any float type read and written as f32 or f64, with no copy where it is that: how
// kernels see their tensors that are written once for both (gradient_ops.h).
#pragma once

#include <type_traits>

#include "base/dtype.h"
#include "drivers/cpu/common/row_access.h"

namespace anymps::cpu {

// A few elements of any float type, such as the parameters of channels.
template <typename A>
void read_numbers(DType dtype, const void* from, int64_t count, A* to) {
  dispatch<kFloat>(dtype, [&]<typename T>() {
    const T* numbers = static_cast<const T*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<A>(static_cast<Compute<T>>(numbers[i]));
  });
}
template <typename A>
void write_numbers(DType dtype, void* to, int64_t count, const A* from) {
  dispatch<kFloat>(dtype, [&]<typename T>() {
    T* numbers = static_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i)
      numbers[i] = static_cast<T>(static_cast<Compute<T>>(from[i]));
  });
}

// As RowAccess, for elements one after the other.
template <typename A>
class DenseRows {
 public:
  DenseRows() = default;
  explicit DenseRows(DType dtype)
      : dtype_(dtype),
        element_(static_cast<int64_t>(size_of(dtype))),
        vectors_(std::is_same_v<A, float> && is_half(dtype)) {
    if (vectors_) access_ = RowAccess(dtype, 1);
  }
  bool direct() const { return dtype_ == dtype_of<A>; }
  size_t element() const { return element_; }
  // Elements [first, first + n), at most kRowTile, of the tensor at `base`.
  const A* read(const void* base, int64_t first, int64_t n, A* buffer) const {
    if (direct()) return static_cast<const A*>(base) + first;
    if constexpr (std::is_same_v<A, float>)
      if (vectors_) return access_.read(base, first, n, buffer);
    read_numbers(dtype_, static_cast<const char*>(base) + first * element_, n, buffer);
    return buffer;
  }
  // Where to compute what is then given to write().
  A* target(void* base, int64_t first, A* buffer) const {
    return direct() ? static_cast<A*>(base) + first : buffer;
  }
  void write(void* base, int64_t first, int64_t n, const A* values) const {
    if (direct()) return;
    if constexpr (std::is_same_v<A, float>)
      if (vectors_) return access_.write(base, first, n, values);
    write_numbers(dtype_, static_cast<char*>(base) + first * element_, n, values);
  }

 private:
  DType dtype_ = dtype_of<A>;
  int64_t element_ = sizeof(A);
  bool vectors_ = false;
  RowAccess access_;
};

// Calls fn.template operator()<A>() with the type that elements of a dtype are computed in.
template <typename Fn>
decltype(auto) with_computed(DType dtype, Fn&& fn) {
  if (dtype == DType::kF64) return fn.template operator()<double>();
  return fn.template operator()<float>();
}

}  // namespace anymps::cpu
