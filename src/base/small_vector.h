// SPDX-License-Identifier: Apache-2.0
// A vector of trivially copyable elements whose first N live inside the object: shapes and strides
// are made and copied on every call, and must not touch the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace anymps {

template <typename T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  explicit SmallVector(size_t count, T value = T()) { assign(count, value); }
  SmallVector(std::initializer_list<T> list) : SmallVector(list.begin(), list.end()) {}
  template <typename It, typename = std::enable_if_t<!std::is_integral_v<It>>>
  SmallVector(It first, It last) {
    for (; first != last; ++first) push_back(static_cast<T>(*first));
  }
  SmallVector(std::span<const T> other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(const SmallVector& other) { copy(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) copy(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ ? heap_.get() : inline_; }
  const T* data() const { return heap_ ? heap_.get() : inline_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  operator std::span<const T>() const { return {data(), size_}; }

  void clear() { size_ = 0; }
  void assign(size_t count, T value) {
    clear();
    resize(count, value);
  }
  void resize(size_t count, T value = T()) {
    reserve(count);
    for (size_t i = size_; i < count; ++i) data()[i] = value;
    size_ = count;
  }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    const size_t grown = std::max(count, 2 * capacity_);
    std::unique_ptr<T[]> bigger(new T[grown]);
    std::copy(begin(), end(), bigger.get());
    heap_ = std::move(bigger);
    capacity_ = grown;
  }
  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void copy(const SmallVector& other) {
    size_ = 0;
    reserve(other.size_);
    std::copy(other.begin(), other.end(), data());
    size_ = other.size_;
  }
  void take(SmallVector& other) {
    if (other.heap_) {
      heap_ = std::move(other.heap_);
      capacity_ = other.capacity_;
      size_ = other.size_;
      other.capacity_ = N;
    } else {
      std::copy(other.begin(), other.end(), data());
      size_ = other.size_;
    }
    other.size_ = 0;
  }

  size_t size_ = 0, capacity_ = N;
  std::unique_ptr<T[]> heap_;
  T inline_[N];
};

}  // namespace anymps
