// SPDX-License-Identifier: Apache-2.0
// Distinct elements, or distinct slices along an axis.
#include "ops/reduction/unique.h"

#include <algorithm>
#include <numeric>

#include "base/string_store.h"
#include "ops/infer.h"

namespace anymps {

namespace {

// -1, 0, 1: a comes before b, is equal, comes after.
template <typename T>
int compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Text>) {
    const int order = text_of(a).compare(text_of(b));
    return order < 0 ? -1 : order > 0;
  } else if constexpr (std::is_same_v<T, Complex>) {
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
  for (int64_t& number : moved.inverse) number = rank[static_cast<size_t>(number)];
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
    result.inverse[static_cast<size_t>(place(i))] = static_cast<int64_t>(result.first.size()) - 1;
  }
  return sorted ? result : as_they_come(result);
}

template <typename T>
Distinct find(const TensorDesc& desc, const T* data, int64_t axis, bool sorted) {
  int64_t outer = 1, inner = 1;
  const int64_t slices = axis < 0 ? desc.count() : desc.shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; axis >= 0 && i < desc.rank(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : desc.shape[static_cast<size_t>(i)];
  const auto order_of = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t at = o * slices * inner + i;
        const int order = compare(data[at + a * inner], data[at + b * inner]);
        if (order != 0) return order;
      }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(slices));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return order_of(a, b) < 0; });
  return count_distinct(
      order.size(), sorted, [&](size_t i) { return order[i]; },
      [&](size_t i) { return order_of(order[i - 1], order[i]) != 0; });
}

std::vector<Shape> measure_unique(const MeasureContext& ctx) {
  const MeasureInput& x = ctx.inputs[0];
  const int64_t axis = unique_axis(ctx.attrs.ints("axes"), x.desc.rank());
  const Distinct distinct = axis < 0 && contains(kAny, x.desc.dtype)
                                ? find_distinct_numbers(x.desc, x.data, false)
                                : find_distinct(x.desc, x.data, axis, false);
  const auto count = static_cast<int64_t>(distinct.first.size());
  Shape shape{count};
  if (axis >= 0) {
    shape = x.desc.shape;
    shape[static_cast<size_t>(axis)] = count;
  }
  return {shape, Shape{count}, Shape{static_cast<int64_t>(distinct.inverse.size())}, Shape{count}};
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

Distinct find_distinct_numbers(const TensorDesc& desc, const void* data, bool sorted) {
  return dispatch<kAny>(desc.dtype, [&]<typename T>() {
    struct Item {
      T value;
      int64_t place;
    };
    std::vector<Item> items(static_cast<size_t>(desc.count()));
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

OP(unique)
    .doc(
        "The distinct elements of x, or its distinct slices along an axis, in ascending order or "
        "in "
        "the order of their first coming; NaN is equal to NaN.")
    .formula("y = x[indices], x = y[inverse]")
    .input("x", kAny | kText)
    .output("y")
    .output("indices", "i64", "where each distinct one comes first")
    .output("inverse", "i64", "of each element or slice of x, where it is in y")
    .output("counts", "i64", "how often each distinct one comes")
    .attr("sorted", true, "ascending; otherwise in the order of their first coming")
    .attr("axes", std::vector<int64_t>{}, "the one axis that slices lie along; none: elements")
    .infer([](InferContext& ctx) {
      const int64_t axis = unique_axis(ctx.attrs.ints("axes"), ctx.rank(0));
      const Dim n = ctx.fresh("n");
      Dims shape{n};
      if (axis >= 0) {
        shape = ctx.shape(0);
        shape[static_cast<size_t>(axis)] = n;
      }
      const Dim all = axis >= 0 ? ctx.shape(0)[static_cast<size_t>(axis)]
                                : product(ctx.shape(0), 0, ctx.shape(0).size());
      const Dims lengths[] = {shape, {n}, {all}, {n}};
      for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, lengths[i]);
    })
    .measure(measure_unique)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0})
    .sample({"flat", {{6}}, {}, {{0, {2, 1, 1, 3, 4, 3}}}})
    .sample({"coming", {{6}}, {{"sorted", false}}, {{0, {2, 1, 1, 3, 4, 3}}}})
    .sample({"matrix", {{3, 4}}, {}, {{0, {1, 0, 1, 0, 3, 3, 2, 1, 0, 0, 0, 1}}}})
    .sample(
        {"rows", {{3, 3}}, {{"axes", std::vector<int64_t>{0}}}, {{0, {1, 0, 0, 1, 0, 0, 2, 3, 4}}}})
    .sample({"columns",
             {{2, 4, 1}},
             {{"axes", std::vector<int64_t>{1}}, {"sorted", false}},
             {{0, {1, 1, 0, 1, 2, 1, 0, 2}}}})
    .sample({"empty", {{0}}, {}});

}  // namespace anymps
