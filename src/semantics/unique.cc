// SPDX-License-Identifier: Apache-2.0
#include "semantics/unique.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/string_store.h"
#include "semantics/sort_items.h"

namespace anymps {

namespace {

// -1, 0, 1: a comes before b, is equal, comes after.
template <typename T>
int compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Text>) {
    const int order = text_of(a).compare(text_of(b));
    return order < 0 ? -1 : order > 0;
  } else if constexpr (kIsComplexType<T>) {
    const int order = compare(a.real(), b.real());
    return order != 0 ? order : compare(a.imag(), b.imag());
  } else {
    const auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
    const bool x_nan = x != x, y_nan = y != y;
    if (x_nan || y_nan) return x_nan - y_nan;
    return x < y ? -1 : x > y;
  }
}

// From ascending order to the order of the first coming.
Distinct as_they_come(const Distinct& ascending) {
  std::vector<size_t> coming(ascending.first.size());
  std::iota(coming.begin(), coming.end(), size_t{0});
  std::sort(coming.begin(), coming.end(),
            [&](size_t a, size_t b) { return ascending.first[a] < ascending.first[b]; });
  Distinct moved{{}, ascending.inverse, {}};
  std::vector<int64_t> rank(coming.size());
  for (size_t i = 0; i < coming.size(); ++i) {
    rank[coming[i]] = static_cast<int64_t>(i);
    moved.first.push_back(ascending.first[coming[i]]);
    moved.counts.push_back(ascending.counts[coming[i]]);
  }
  for (int64_t& number : moved.inverse) number = rank[number];
  return moved;
}

// Of `count` elements or slices, where place(i) is the i-th in ascending order and differs(i) tells
// whether it is not the same as the one before.
template <typename Place, typename Differs>
Distinct count_distinct(size_t count, bool sorted, Place place, Differs differs) {
  Distinct result;
  result.inverse.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || differs(i)) {
      result.first.push_back(place(i));
      result.counts.push_back(0);
    }
    ++result.counts.back();
    result.inverse[place(i)] = std::ssize(result.first) - 1;
  }
  return sorted ? result : as_they_come(result);
}

// Elements, for axis -1, or slices along an axis, compared by their numbers.
template <typename T>
class Slices {
 public:
  Slices(const TensorDesc& desc, const T* data, int64_t axis) : data_(data) {
    count_ = axis < 0 ? desc.count() : desc.shape[axis];
    for (int64_t i = 0; axis >= 0 && i < desc.rank(); ++i)
      (i < axis ? outer_ : inner_) *= i == axis ? 1 : desc.shape[i];
  }
  int64_t count() const { return count_; }
  int order(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer_; ++o)
      for (int64_t i = 0; i < inner_; ++i) {
        const int64_t at = o * count_ * inner_ + i;
        const int order = compare(data_[at + a * inner_], data_[at + b * inner_]);
        if (order != 0) return order;
      }
    return 0;
  }

 private:
  const T* data_;
  int64_t outer_ = 1, inner_ = 1, count_ = 0;
};

template <typename T>
Distinct find(const TensorDesc& desc, const T* data, int64_t axis, bool sorted) {
  const Slices<T> slices(desc, data, axis);
  const auto order_of = [&](int64_t a, int64_t b) { return slices.order(a, b); };
  std::vector<int64_t> order(slices.count());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return order_of(a, b) < 0; });
  return count_distinct(
      order.size(), sorted, [&](size_t i) { return order[i]; },
      [&](size_t i) { return order_of(order[i - 1], order[i]) != 0; });
}

}  // namespace

int64_t unique_axis(const std::vector<int64_t>& axes, int64_t rank) {
  if (axes.empty()) return -1;
  require(axes.size() == 1, "[unique] axes must name one axis or none, there are {}", axes.size());
  return normalize_axis(axes[0], rank, "unique");
}

Distinct find_distinct(const TensorDesc& desc, const void* data, int64_t axis, bool sorted) {
  if (desc.dtype == DType::kString) return find(desc, static_cast<const Text*>(data), axis, sorted);
  return dispatch<kAny>(desc.dtype, [&]<typename T>() {
    return find(desc, static_cast<const T*>(data), axis, sorted);
  });
}

Distinct find_changes(const TensorDesc& desc, const void* data, int64_t axis) {
  const auto changes = [&]<typename T>() {
    const Slices<T> slices(desc, static_cast<const T*>(data), axis);
    return count_distinct(
        slices.count(), true, [](size_t i) { return static_cast<int64_t>(i); },
        [&](size_t i) {
          return slices.order(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i)) != 0;
        });
  };
  if (desc.dtype == DType::kString) return changes.template operator()<Text>();
  return dispatch<kAny>(desc.dtype, changes);
}

namespace {

// By the keys of the elements, which are sorted fast.
template <typename T>
Distinct find_by_keys(const T* data, size_t count, bool sorted) {
  const auto memory = std::make_unique_for_overwrite<ItemOf<T>[]>(2 * count);
  read_items(memory.get(), data, static_cast<int64_t>(count), 1, false);
  const ItemOf<T>* items =
      sort_items(memory.get(), memory.get() + count, static_cast<int64_t>(count));
  return count_distinct(
      count, sorted, [&](size_t i) { return items[i].at(); },
      [&](size_t i) { return items[i - 1].key() != items[i].key(); });
}

}  // namespace

Distinct find_distinct_numbers(const TensorDesc& desc, const void* data, bool sorted) {
  return dispatch<kAny>(desc.dtype, [&]<typename T>() {
    if constexpr (!kIsComplexType<T>)
      if (desc.count() < kLongestLine)
        return find_by_keys(static_cast<const T*>(data), desc.count(), sorted);
    struct Item {
      T value;
      int64_t place;
    };
    std::vector<Item> items(desc.count());
    for (size_t i = 0; i < items.size(); ++i)
      items[i] = {static_cast<const T*>(data)[i], static_cast<int64_t>(i)};
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      const int order = compare(a.value, b.value);
      return order != 0 ? order < 0 : a.place < b.place;
    });
    return count_distinct(
        items.size(), sorted, [&](size_t i) { return items[i].place; },
        [&](size_t i) { return compare(items[i - 1].value, items[i].value) != 0; });
  });
}

}  // namespace anymps
