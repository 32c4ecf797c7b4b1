// SPDX-License-Identifier: Apache-2.0
// Order for kernels and for the measuring of results: elements are brought to unsigned keys in the
// same order, so that one comparison serves every dtype and NaN needs no care; a key goes with its
// place, so that no two are equal and every sort is stable.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/dtype.h"

namespace anymps {

// The unsigned number of an element's size.
template <typename T>
using KeyOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// An unsigned number that is in the order of the elements: NaN above all, -0 equal to 0.
template <typename T>
KeyOf<T> key_of(T element) {
  using U = KeyOf<T>;
  constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) {
    U byte;
    std::memcpy(&byte, &element, 1);
    return static_cast<U>(byte != 0);
  } else if constexpr (std::is_unsigned_v<T>) {
    return element;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(static_cast<U>(element) ^ sign);
  } else {
    const auto number = static_cast<Compute<T>>(element);
    U bits;
    std::memcpy(&bits, &element, sizeof bits);
    bits = number == 0 ? U{0} : bits;
    const U key = static_cast<U>(bits & sign ? ~bits : bits | sign);
    return number != number ? static_cast<U>(~U{0}) : key;
  }
}
template <typename T>
bool is_nan_element(T element) {
  if constexpr (std::is_integral_v<T>)
    return (void)element, false;
  else
    return static_cast<Compute<T>>(element) != static_cast<Compute<T>>(element);
}

// More elements than this on a line are left to the reference kernel.
inline constexpr int64_t kLongestLine = int64_t{1} << 31;

// A key and the place that it comes from: in one word where they fit.
template <typename U>
struct SortItem {
  uint64_t word;

  static SortItem of(U key, int64_t at) {
    return {static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(at)};
  }
  U key() const { return static_cast<U>(word >> 32); }
  int64_t at() const { return static_cast<int64_t>(word & 0xffffffffu); }
  friend bool operator<(SortItem a, SortItem b) { return a.word < b.word; }
};
template <>
struct SortItem<uint64_t> {
  uint64_t word;
  int64_t place;

  static SortItem of(uint64_t key, int64_t at) { return {key, at}; }
  uint64_t key() const { return word; }
  int64_t at() const { return place; }
  friend bool operator<(const SortItem& a, const SortItem& b) {
    return a.word != b.word ? a.word < b.word : a.place < b.place;
  }
};
template <typename T>
using ItemOf = SortItem<KeyOf<T>>;

// Items of a line, in its order; falling keys if `descending`.
template <typename T>
void read_items(ItemOf<T>* items, const T* x, int64_t n, int64_t step, bool descending) {
  using U = KeyOf<T>;
  const U turn = descending ? static_cast<U>(~U{0}) : U{0};
  for (int64_t i = 0; i < n; ++i)
    items[i] = ItemOf<T>::of(static_cast<U>(key_of(x[i * step]) ^ turn), i);
}

// Sorts items that are in the order of their places, and returns where the result is: in `items` or
// in `spare`, which has room for as many.
template <typename U>
SortItem<U>* sort_items(SortItem<U>* items, SortItem<U>* spare, int64_t n) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(U)), kMostPasses = (kBits + 7) / 8;
  if (n < 256) {
    std::sort(items, items + n);
    return items;
  }
  // Digits of the keys, the lowest first. Places need no pass: they are in order.
  const int digit = n < 8192 || kBits < 32 ? 8 : 11, passes = (kBits + digit - 1) / digit;
  const uint64_t mask = (uint64_t{1} << digit) - 1;
  std::array<std::array<uint32_t, 2048>, kMostPasses> counts;
  for (int pass = 0; pass < passes; ++pass) counts[pass].fill(0);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t key = items[i].key();
    for (int pass = 0; pass < passes; ++pass, key >>= digit) ++counts[pass][key & mask];
  }
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = pass * digit;
    auto& starts = counts[pass];
    const uint64_t first = static_cast<uint64_t>(items[0].key()) >> shift & mask;
    if (starts[first] == static_cast<uint32_t>(n)) continue;  // all have this digit
    uint32_t next = 0;
    for (uint64_t i = 0; i <= mask; ++i) {
      const uint32_t count = starts[i];
      starts[i] = next;
      next += count;
    }
    for (int64_t i = 0; i < n; ++i)
      spare[starts[static_cast<uint64_t>(items[i].key()) >> shift & mask]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

// Up to so many are kept in order as they come.
inline constexpr int64_t kMostInserted = 24;

// How many items first_items needs room for.
inline int64_t room_for_first(int64_t k) { return k <= kMostInserted ? k : 2 * k + 64; }

// Calls take(i) for the places of a line in order, but for some that bound(), the last element that
// is among the first so far, keeps out: most elements are looked at side by side.
template <typename T, typename Bound, typename Take>
void for_candidates(const T* x, int64_t begin, int64_t n, int64_t step, bool descending,
                    Bound bound, Take take) {
  constexpr int64_t kBlock = 16;
  int64_t i = begin;
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    for (; step == 1 && i + kBlock <= n; i += kBlock) {
      const T last = bound();
      bool any = false;  // a NaN is one
      if (descending)
        for (int64_t k = 0; k < kBlock; ++k) any |= !(x[i + k] <= last);
      else
        for (int64_t k = 0; k < kBlock; ++k) any |= !(x[i + k] >= last);
      if (!any) continue;
      for (int64_t k = i; k < i + kBlock; ++k)
        if (!(descending ? x[k] <= last : x[k] >= last)) take(k);
    }
  }
  for (; i < n; ++i) take(i);
}

// The first k of a line in order, which are few: only those that may be among them are kept, and
// the threshold falls as they come.
template <typename T>
void first_items(ItemOf<T>* items, int64_t k, const T* x, int64_t n, int64_t step,
                 bool descending) {
  using U = KeyOf<T>;
  const U turn = descending ? static_cast<U>(~U{0}) : U{0};
  const auto item_at = [&](int64_t i) {
    return ItemOf<T>::of(static_cast<U>(key_of(x[i * step]) ^ turn), i);
  };
  if (k <= kMostInserted) {
    const auto insert = [&](ItemOf<T> item, int64_t end) {
      for (; end > 0 && item < items[end - 1]; --end) items[end] = items[end - 1];
      items[end] = item;
    };
    for (int64_t i = 0; i < k; ++i) insert(item_at(i), i);
    for_candidates(
        x, k, n, step, descending, [&] { return x[items[k - 1].at() * step]; },
        [&](int64_t i) {
          if (const auto item = item_at(i); item < items[k - 1]) insert(item, k - 1);
        });
    return;
  }
  const int64_t room = room_for_first(k), first = std::min(room - 1, n);
  int64_t kept = 0;
  ItemOf<T> last{};
  const auto shrink = [&] {
    std::nth_element(items, items + k - 1, items + kept);
    last = items[k - 1];
    kept = k;
  };
  for (; kept < first; ++kept) items[kept] = item_at(kept);
  if (first < n) {
    shrink();
    for_candidates(
        x, first, n, step, descending, [&] { return x[last.at() * step]; },
        [&](int64_t i) {
          const auto item = item_at(i);
          if (!(item < last)) return;
          items[kept++] = item;
          if (kept == room) shrink();
        });
  }
  std::partial_sort(items, items + k, items + kept);
}

}  // namespace anymps
