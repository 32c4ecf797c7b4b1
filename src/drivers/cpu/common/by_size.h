// SPDX-License-Identifier: Apache-2.0
// For kernels that move elements without looking at them: a type for each size of an element.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace anymps::cpu {

// Calls fn.template operator()<T>() with an unsigned integer of `element` bytes.
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
    default:
      fail(Code::kInternal, "[cpu] no element has {} bytes", element);
  }
}

}  // namespace anymps::cpu
