// SPDX-License-Identifier: Apache-2.0
// Lists and memory that are made anew for every call: what is usual lies in the object itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace anymps::lowering {

// Elements are not set to anything until they are written: a call uses few of the places.
template <class T, size_t kInside>
class Few {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Few() = default;
  explicit Few(size_t count) { resize(count); }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  void resize(size_t count) {
    if (count > room_) move_outside(count);
    size_ = count;
  }
  T& push_back(const T& value) {
    if (size_ == room_) [[unlikely]] {
      const T kept = value;
      move_outside(2 * room_);
      return *std::construct_at(data_ + size_++, kept);
    }
    return *std::construct_at(data_ + size_++, value);
  }
  T& emplace_back() {
    if (size_ == room_) [[unlikely]]
      move_outside(2 * room_);
    return *std::construct_at(data_ + size_++);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  operator std::span<const T>() const { return {data(), size_}; }

 private:
  [[gnu::noinline, gnu::cold]] void move_outside(size_t room) {
    auto larger = std::make_unique<T[]>(room);
    std::copy(data_, data_ + size_, larger.get());
    outside_ = std::move(larger);
    data_ = outside_.get();
    room_ = room;
  }

  union Inside {
    Inside() {}
    T items[kInside];
  } inside_;
  std::unique_ptr<T[]> outside_;
  T* data_ = inside_.items;
  size_t size_ = 0, room_ = kInside;
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
