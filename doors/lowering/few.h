// SPDX-License-Identifier: Apache-2.0
// Lists and memory that are made anew for every call: what is usual lies in the object itself.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace anymps::lowering {

template <class T, size_t kInside>
class Few {
 public:
  Few() = default;
  explicit Few(size_t count) { resize(count); }

  void resize(size_t count) {
    if (count > kInside) outside_.resize(count);
    size_ = count;
  }
  T& push_back(T value) {
    if (size_ == kInside) outside_.assign(inside_.begin(), inside_.end());
    if (size_ >= kInside)
      outside_.push_back(std::move(value));
    else
      inside_[size_] = std::move(value);
    return data()[size_++];
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ > kInside || !outside_.empty() ? outside_.data() : inside_.data(); }
  const T* data() const { return const_cast<Few*>(this)->data(); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  operator std::span<const T>() const { return {data(), size_}; }

 private:
  std::array<T, kInside> inside_;
  std::vector<T> outside_;
  size_t size_ = 0;
};

// Memory for what arguments point to, which lies still until the call is over.
template <class T, size_t kInside>
class Arena {
 public:
  std::span<T> take(size_t count) {
    if (used_ + count <= kInside) {
      used_ += count;
      return {inside_.data() + used_ - count, count};
    }
    outside_.push_back(std::make_unique<T[]>(count));
    return {outside_.back().get(), count};
  }

 private:
  std::array<T, kInside> inside_;
  size_t used_ = 0;
  std::vector<std::unique_ptr<T[]>> outside_;
};

}  // namespace anymps::lowering
