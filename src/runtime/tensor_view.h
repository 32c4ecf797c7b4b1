// SPDX-License-Identifier: Apache-2.0
// A tensor in memory that somebody else keeps: a pointer with dims and strides, by value. What
// frameworks hand over for every call, so that nothing is wrapped, counted or copied.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"
#include "runtime/tensor.h"

namespace anymps {

struct TensorView {
  void* data = nullptr;              // element [0, …, 0]
  const int64_t* dims = nullptr;     // `rank` extents
  const int64_t* strides = nullptr;  // in elements; null: row-major
  DType dtype = DType::kF32;
  int32_t rank = -1;  // -1: an input that is left out

  bool absent() const { return rank < 0; }
};

// Valid as long as the description, or the tensor.
inline TensorView view_of(const TensorDesc& desc, void* data) {
  return {data, desc.shape.data(), desc.strides.data(), desc.dtype,
          static_cast<int32_t>(desc.shape.size())};
}
inline TensorView view_of(const Tensor& tensor) { return view_of(tensor.desc, tensor.data()); }

// The views of a call, on the stack as long as they are few: a SmallVector without the cost of
// making those that are not there.
class Views {
 public:
  void push_back(const TensorView& view) {
    if (size_ < kFew) {
      few_.views[size_++] = view;
      return;
    }
    if (many_.empty()) many_.assign(few_.views, few_.views + kFew);
    many_.push_back(view);
    ++size_;
  }
  size_t size() const { return size_; }
  TensorView* begin() { return many_.empty() ? few_.views : many_.data(); }
  TensorView* end() { return begin() + size_; }
  const TensorView* begin() const { return many_.empty() ? few_.views : many_.data(); }
  const TensorView* end() const { return begin() + size_; }
  const TensorView& operator[](size_t i) const { return begin()[i]; }
  operator std::span<const TensorView>() const { return {begin(), size_}; }

 private:
  static constexpr size_t kFew = 8;
  union Room {
    Room() {}  // NOLINT: nothing is there yet
    TensorView views[kFew];
  };
  Room few_;
  size_t size_ = 0;
  std::vector<TensorView> many_;
};

TensorDesc desc_of(const TensorView& view);
// A tensor over the same memory, which it does not own.
Tensor borrowed(const TensorView& view);

inline bool row_major(const TensorView& view) {
  if (!view.strides) return true;
  uint64_t expected = 1;  // wraps for what cannot be in memory anyway
  bool plain = true, empty = false;
  for (int32_t i = view.rank; i-- > 0;) {
    plain = plain && (view.dims[i] == 1 || static_cast<uint64_t>(view.strides[i]) == expected);
    empty = empty || view.dims[i] == 0;
    expected *= static_cast<uint64_t>(view.dims[i]);
  }
  return plain || empty;
}

// The bytes that a tensor reaches, relative to its first element; begin == end: none.
struct ByteRange {
  int64_t begin = 0, end = 0;
};
ByteRange byte_range(const TensorDesc& desc);

}  // namespace anymps
