// SPDX-License-Identifier: Apache-2.0
// The loops of the elementwise reference kernels: all inputs broadcast to the output's shape, one
// scalar function per element. The function is passed type-erased so that a loop is compiled once
// for each dtype and not once for each op.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <utility>

#include "drivers/reference/reference.h"
#include "semantics/scalar_functions.h"

namespace anymps {

// Any byte but 0 is true: bool memory that others filled may hold more than 0 and 1.
template <typename T>
T load(const View& view, int64_t offset) {
  if constexpr (std::is_same_v<T, bool>)
    return view.as<uint8_t>()[offset] != 0;
  else
    return view.as<T>()[offset];
}

// Output 0 has elements of type R, input i those of the i-th T.
template <typename R, typename... T>
void map_elements(const ReferenceArgs& args,
                  const std::function<Wide<R>(std::type_identity_t<Wide<T>>...)>& fn) {
  const View& out = args.out[0];
  [&]<size_t... I>(std::index_sequence<I...>) {
    const std::array<BroadcastOffset, sizeof...(T)> offsets = {
        BroadcastOffset(args.in[I], out.shape())...};
    for_each_index(out.shape(), [&](const Shape& index) {
      out.as<R>()[out.offset(index)] =
          narrow<R>(fn(widen(load<T>(args.in[I], offsets[I](index)))...));
    });
  }
  (std::index_sequence_for<T...>());
}

// y = fn(x) and y = fn(a, b) with the dtype of the input.
template <DTypeSet allowed, typename Fn>
void map_unary(const ReferenceArgs& args, Fn fn) {
  dispatch<allowed>(args.in[0].dtype, [&]<typename T>() { map_elements<T, T>(args, fn); });
}
template <DTypeSet allowed, typename Fn>
void map_binary(const ReferenceArgs& args, Fn fn) {
  dispatch<allowed>(args.in[0].dtype, [&]<typename T>() { map_elements<T, T, T>(args, fn); });
}
// The same with a bool result.
template <DTypeSet allowed, typename Fn>
void test_unary(const ReferenceArgs& args, Fn fn) {
  dispatch<allowed>(args.in[0].dtype, [&]<typename T>() { map_elements<bool, T>(args, fn); });
}
template <DTypeSet allowed, typename Fn>
void test_binary(const ReferenceArgs& args, Fn fn) {
  dispatch<allowed>(args.in[0].dtype, [&]<typename T>() { map_elements<bool, T, T>(args, fn); });
}

// The neutral elements of max and min: infinities where there are any.
template <typename T>
Wide<T> lowest() {
  using Limits = std::numeric_limits<Wide<T>>;
  if constexpr (Limits::has_infinity)
    return -Limits::infinity();
  else
    return Limits::lowest();
}
template <typename T>
Wide<T> highest() {
  using Limits = std::numeric_limits<Wide<T>>;
  if constexpr (Limits::has_infinity)
    return Limits::infinity();
  else
    return Limits::max();
}

}  // namespace anymps
