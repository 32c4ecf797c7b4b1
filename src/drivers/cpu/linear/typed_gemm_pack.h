// SPDX-License-Identifier: Apache-2.0
// How operands of typed_gemm.h are written as its vector code reads them.
#pragma once

#include <algorithm>
#include <type_traits>

#include "semantics/scalar_functions.h"

namespace anymps::cpu {

// Those that oneDNN does not multiply. f32 is for kernels that have several products in one.
inline constexpr DTypeSet kTypedGemm = bit(DType::kF64) | kInt | kComplex;

// to[depth, width] = from, converted; zeros after the columns. Complex ones of b come as the real
// parts of a row, then its imaginary parts.
template <typename To, typename From>
void pack_elements(const From* from, int64_t depth_step, int64_t column_step, int64_t depth,
                   int64_t columns, int64_t width, To* to) {
  constexpr bool kPlanar = !std::is_same_v<To, From> && scalar::kIsComplex<From>;
  const auto put = [](To* at, int64_t width, From value) {
    if constexpr (kPlanar) {
      at[0] = value.real();
      at[width] = value.imag();
    } else {
      (void)width;
      at[0] = static_cast<To>(value);
    }
  };
  const int64_t row = kPlanar ? 2 * width : width;
  if (columns < width)
    for (int64_t k = 0; k < depth; ++k) {
      std::fill_n(to + k * row + columns, width - columns, To{});
      if constexpr (kPlanar) std::fill_n(to + k * row + width + columns, width - columns, To{});
    }
  if (column_step == 1) {
    for (int64_t k = 0; k < depth; ++k, from += depth_step)
      for (int64_t j = 0; j < columns; ++j) put(to + k * row + j, width, from[j]);
    return;
  }
  constexpr int64_t kBlock = 8;  // lines of `to` that stay in the cache while columns are walked
  for (int64_t first = 0; first < depth; first += kBlock) {
    const int64_t end = std::min(depth, first + kBlock);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = first; k < end; ++k)
        put(to + k * row + j, width, from[k * depth_step + j * column_step]);
  }
}

// Calls fn.template operator()<Element, Lane>(): unsigned types as signed ones, whose sums are the
// same bits.
template <typename Fn>
void with_lane(DType dtype, Fn&& fn) {
  dispatch<kTypedGemm | bit(DType::kF32)>(dtype, [&]<typename T>() {
    if constexpr (sizeof(T) == 1)
      fn.template operator()<T, int16_t>();
    else if constexpr (std::is_integral_v<T>)
      fn.template operator()<T, std::make_signed_t<T>>();
    else
      fn.template operator()<T, T>();
  });
}

}  // namespace anymps::cpu
