// SPDX-License-Identifier: Apache-2.0
// Questions that are answered while lowering: shapes, ranks, types and lists of numbers.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

int64_t normal(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

Values rank_of(Call& c) { return {c.builder.rank(c.part(0).tensor())}; }
Values dims_of(Call& c) { return {c.builder.dims(c.part(0).tensor())}; }
Values dim_of(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  return {dims.at(normal(c.part(1).integer(), std::ssize(dims)))};
}
Values numel_of(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  return {std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())};
}
Values dtype_of(Call& c) { return {c.builder.dtype(c.part(0).tensor())}; }
Values is_half_of(Call& c) { return {is_half(c.builder.dtype(c.part(0).tensor()))}; }
Values is_float_of(Call& c) { return {is_float(c.builder.dtype(c.part(0).tensor()))}; }
Values has(Call& c) {
  return {c.has(0) && !(std::holds_alternative<Values>(c.parts[0]) && c.parts[0].values().empty())};
}
Values length(Call& c) {
  if (const auto* list = std::get_if<Values>(&c.part(0)))
    return {static_cast<int64_t>(list->size())};
  return {static_cast<int64_t>(c.part(0).ints().size())};
}
Values at(Call& c) {
  if (const auto* list = std::get_if<Values>(&c.part(0)))
    return {list->at(normal(c.part(1).integer(), std::ssize(*list)))};
  const Ints list = c.part(0).ints();
  return {list.at(normal(c.part(1).integer(), std::ssize(list)))};
}
Values join(Call& c) {
  Ints all;
  for (const Value& part : c.parts) {
    const Ints numbers = part.ints();
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return {all};
}
Values range(Call& c) {
  Ints numbers;
  for (int64_t i = c.part(0).integer(); i < c.part(1).integer(); ++i) numbers.push_back(i);
  return {numbers};
}
Values repeated(Call& c) { return {Ints(c.part(1).integer(), c.part(0).integer())}; }
Values part_of(Call& c) {
  const Ints list = c.part(0).ints();
  const int64_t first = normal(c.part(1).integer(), std::ssize(list)),
                last = c.has(2) ? normal(c.parts[2].integer(), std::ssize(list)) : std::ssize(list);
  return {Ints(list.begin() + first, list.begin() + last)};
}
Values product(Call& c) {
  const Ints list = c.part(0).ints();
  return {std::accumulate(list.begin(), list.end(), int64_t{1}, std::multiplies<>())};
}
// Axes counted from the front, each once; none given: all of them.
Values normal_axes(Call& c) {
  const int64_t rank =
      c.part(1).is_tensor() ? c.builder.rank(c.parts[1].tensor()) : c.parts[1].integer();
  Ints axes = c.has(0) ? c.parts[0].ints() : Ints();
  if (axes.empty() || (c.has(2) && c.parts[2].flag())) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = normal(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return {axes};
}
Values normal_axis(Call& c) {
  const int64_t rank =
      c.part(1).is_tensor() ? c.builder.rank(c.parts[1].tensor()) : c.parts[1].integer();
  return {normal(c.part(0).integer(), rank)};
}
// The shape with the given axes as 1.
Values kept(Call& c) {
  Ints dims = c.part(0).ints();
  for (const int64_t axis : c.part(1).ints()) dims.at(axis) = 1;
  return {dims};
}
// How many elements lie along these axes.
Values extent(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  int64_t count = 1;
  for (const int64_t axis : c.part(1).ints()) count *= dims.at(axis);
  return {count};
}
Values swapped_last(Call& c) {
  Ints order(c.part(0).integer());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return {order};
}
Values refused(Call& c) { throw std::invalid_argument(c.part(0).text()); }
Values not_of(Call& c) { return {!c.part(0).flag()}; }
Values and_of(Call& c) { return {c.part(0).flag() && c.part(1).flag()}; }
Values or_of(Call& c) { return {c.part(0).flag() || c.part(1).flag()}; }
Values same(Call& c) { return {c.part(0).text() == c.part(1).text()}; }
Values same_type(Call& c) { return {c.part(0).dtype() == c.part(1).dtype()}; }

constexpr FunctionEntry kFunctions[] = {{"rank", rank_of},
                                        {"dims", dims_of},
                                        {"dim", dim_of},
                                        {"numel", numel_of},
                                        {"dtype", dtype_of},
                                        {"is_half", is_half_of},
                                        {"is_float", is_float_of},
                                        {"has", has},
                                        {"len", length},
                                        {"at", at},
                                        {"join", join},
                                        {"range_of", range},
                                        {"repeated", repeated},
                                        {"part", part_of},
                                        {"product", product},
                                        {"normal_axes", normal_axes},
                                        {"normal_axis", normal_axis},
                                        {"kept", kept},
                                        {"swapped_last", swapped_last},
                                        {"extent", extent},
                                        {"refused", refused},
                                        {"not", not_of},
                                        {"and", and_of},
                                        {"or", or_of},
                                        {"same", same},
                                        {"same_type", same_type}};

}  // namespace

std::span<const FunctionEntry> shape_functions() { return kFunctions; }

}  // namespace anymps::lowering
