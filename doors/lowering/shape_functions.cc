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
// Of a tensor, of a number, or the type itself.
amps_dtype type_of(Call& c) {
  const Value& x = c.part(0);
  if (x.is_tensor()) return c.builder.dtype(x.tensor());
  if (std::holds_alternative<bool>(x)) return AMPS_BOOL;
  if (std::holds_alternative<int64_t>(x)) return AMPS_I64;
  if (std::holds_alternative<double>(x)) return AMPS_F64;
  return std::holds_alternative<std::complex<double>>(x) ? AMPS_C128 : x.dtype();
}
Values dtype_of(Call& c) { return {type_of(c)}; }
Values is_half_of(Call& c) { return {is_half(type_of(c))}; }
Values is_float_of(Call& c) { return {is_float(type_of(c))}; }
Values is_complex_of(Call& c) { return {is_complex(type_of(c))}; }
Values is_bool_of(Call& c) { return {type_of(c) == AMPS_BOOL}; }
// Of tensors, or of lists of extents.
Values same_dims(Call& c) {
  const auto dims = [&](size_t i) {
    return c.part(i).is_tensor() ? c.builder.dims(c.part(i).tensor()) : c.part(i).ints();
  };
  return {dims(0) == dims(1)};
}
Values is_tensor(Call& c) { return {c.part(0).is_tensor()}; }
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
  if (const auto* list = std::get_if<Floats>(&c.part(0)))
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
// The same, where each must be one that there is, and given once: of a scalar 0 or -1.
Values axes_of(Call& c) {
  const int64_t rank = c.builder.rank(c.part(1).tensor()), most = std::max<int64_t>(rank, 1);
  Ints axes = c.has(0) ? c.parts[0].ints() : Ints();
  for (int64_t& axis : axes) {
    if (axis < -most || axis >= most)
      throw std::invalid_argument("Dimension out of range (expected to be in range of [" +
                                  std::to_string(-most) + ", " + std::to_string(most - 1) +
                                  "], but got " + std::to_string(axis) + ")");
    axis = normal(axis, most);
  }
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end())
    throw std::invalid_argument("dim " + std::to_string(*twice) +
                                " appears multiple times in the list of dims");
  if (axes.empty() || rank == 0) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return {axes};
}
Values normal_axis(Call& c) {
  const int64_t rank =
      c.part(1).is_tensor() ? c.builder.rank(c.parts[1].tensor()) : c.parts[1].integer();
  return {normal(c.part(0).integer(), rank)};
}
// Axes counted from the front, in the order given.
Values counted_axes(Call& c) {
  Ints axes = c.part(0).ints();
  for (int64_t& axis : axes) axis = normal(axis, c.part(1).integer());
  return {axes};
}
// The order of axes with two of them exchanged.
Values exchanged(Call& c) {
  const int64_t rank = c.part(0).integer();
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (rank > 0)
    std::swap(order.at(normal(c.part(1).integer(), rank)),
              order.at(normal(c.part(2).integer(), rank)));
  return {order};
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
// The order of axes with the given ones behind the others.
Values axes_last(Call& c) {
  const Ints behind = c.part(0).ints();
  Ints order;
  for (int64_t axis = 0; axis < c.part(1).integer(); ++axis)
    if (std::find(behind.begin(), behind.end(), axis) == behind.end()) order.push_back(axis);
  order.insert(order.end(), behind.begin(), behind.end());
  return {order};
}
// A list in another order.
Values reordered(Call& c) {
  const Ints list = c.part(0).ints();
  Ints result;
  for (const int64_t place : c.part(1).ints()) result.push_back(list.at(place));
  return {result};
}
// Of a number that is known while lowering.
bool equals(const Value& value, double number) {
  const auto* complex = std::get_if<std::complex<double>>(&value);
  return complex ? *complex == number : value.is_static_number() && value.number() == number;
}
Values is_one(Call& c) { return {equals(c.part(0), 1)}; }
Values is_zero(Call& c) { return {equals(c.part(0), 0)}; }
Values is_real(Call& c) { return {c.part(0).is_static_number()}; }
Values refused(Call& c) { throw std::invalid_argument(c.part(0).text()); }
Values not_of(Call& c) { return {!c.part(0).flag()}; }
Values and_of(Call& c) { return {c.part(0).flag() && c.part(1).flag()}; }
Values or_of(Call& c) { return {c.part(0).flag() || c.part(1).flag()}; }
Values same(Call& c) { return {c.part(0).text() == c.part(1).text()}; }
Values same_type(Call& c) { return {c.part(0).dtype() == c.part(1).dtype()}; }

// The order of axes that undoes another.
Values inverse_order(Call& c) {
  const Ints order = c.part(0).ints();
  Ints inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse.at(normal(order[i], std::ssize(order))) = static_cast<int64_t>(i);
  return {inverse};
}

const Functions registered = {{"rank", rank_of},
                              {"dims", dims_of},
                              {"dim", dim_of},
                              {"numel", numel_of},
                              {"dtype", dtype_of},
                              {"is_half", is_half_of},
                              {"is_float", is_float_of},
                              {"is_complex", is_complex_of},
                              {"is_bool", is_bool_of},
                              {"is_tensor", is_tensor},
                              {"same_dims", same_dims},
                              {"has", has},
                              {"len", length},
                              {"at", at},
                              {"join", join},
                              {"range_of", range},
                              {"repeated", repeated},
                              {"part", part_of},
                              {"product", product},
                              {"normal_axes", normal_axes},
                              {"axes_of", axes_of},
                              {"normal_axis", normal_axis},
                              {"counted_axes", counted_axes},
                              {"exchanged", exchanged},
                              {"kept", kept},
                              {"swapped_last", swapped_last},
                              {"inverse_order", inverse_order},
                              {"axes_last", axes_last},
                              {"reordered", reordered},
                              {"extent", extent},
                              {"is_one", is_one},
                              {"is_zero", is_zero},
                              {"is_real", is_real},
                              {"refused", refused},
                              {"not", not_of},
                              {"and", and_of},
                              {"or", or_of},
                              {"same", same},
                              {"same_type", same_type}};

}  // namespace

}  // namespace anymps::lowering
