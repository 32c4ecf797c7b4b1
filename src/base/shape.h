// SPDX-License-Identifier: Apache-2.0
// Concrete shapes and strides (what kernels see), and the description of a tensor in memory.
// Symbolic shapes, which graphs carry, are in base/dim.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/small_vector.h"

namespace anymps {

using Shape = SmallVector<int64_t, 6>;    // extents, each >= 0; empty for a scalar
using Strides = SmallVector<int64_t, 6>;  // in elements; may be 0 or negative

std::string to_string(const Shape& shape);  // "[2, 3]"

// Product of the extents; fails when it or the byte count overflows.
int64_t element_count(const Shape& shape);
size_t byte_count(DType dtype, const Shape& shape);

Strides contiguous_strides(const Shape& shape);
bool is_contiguous(const Shape& shape, const Strides& strides);

// NumPy broadcasting; fails with both shapes in the message, which starts with `who` in brackets.
Shape broadcast(const Shape& a, const Shape& b, const char* who);

// Maps an axis in [-rank, rank) to [0, rank); fails with `who` in brackets.
int64_t normalize_axis(int64_t axis, int64_t rank, const char* who);

// A tensor's type and where its elements lie relative to the first one, [0, …, 0].
struct TensorDesc {
  DType dtype = DType::kF32;
  Shape shape;
  Strides strides;

  TensorDesc() = default;
  TensorDesc(DType type, Shape dims)
      : dtype(type), shape(std::move(dims)), strides(contiguous_strides(shape)) {}

  int64_t rank() const { return std::ssize(shape); }
  int64_t count() const { return element_count(shape); }
  size_t bytes() const { return byte_count(dtype, shape); }
  bool contiguous() const { return is_contiguous(shape, strides); }
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

std::string to_string(const TensorDesc& desc);  // "f32[2, 3]", with strides if not contiguous

// The elements that a strided tensor reaches, lowest to highest, relative to its first; high < low
// when it is empty. Fails when they are out of the range of an address.
struct Span {
  int64_t low = 0, high = 0;
};
Span span_of(const TensorDesc& desc);

// Strides with which a tensor is read as if it had shape `to` (0 along broadcast axes).
Strides broadcast_strides(const TensorDesc& desc, const Shape& to);

}  // namespace anymps
