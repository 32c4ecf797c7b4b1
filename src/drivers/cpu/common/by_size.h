// SPDX-License-Identifier: Apache-2.0
// For kernels that move elements without looking at them: a type for each size of an element.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace anymps::cpu {

// An element of 16 bytes, which need not be aligned to more than 8.
struct TwoWords {
  uint64_t low, high;
};

// Calls fn.template operator()<T>() with a plain type of `element` bytes: an unsigned integer, or
// two of them.
template <typename Fn>
decltype(auto) by_size(size_t element, Fn&& fn) {
  switch (element) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    case 8:
      return fn.template operator()<uint64_t>();
    case 16:
      return fn.template operator()<TwoWords>();
    default:
      fail(Code::kInternal, "[cpu] no element has {} bytes", element);
  }
}

}  // namespace anymps::cpu
