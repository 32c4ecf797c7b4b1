// SPDX-License-Identifier: Apache-2.0
// From the engine's element types to those of C++.
#pragma once

#include <cstdint>

#include "anymps/anymps.h"

namespace anymps::common {

// Calls fn.operator()<T>() with the C++ type of the elements. False for those that are not numbers
// in C++: bools, half floats, strings, complex numbers.
template <typename Fn>
bool with_number_type(amps_dtype dtype, Fn&& fn) {
  const auto is = [&]<typename T>(amps_dtype number, T) {
    if (dtype == number) fn.template operator()<T>();
    return dtype == number;
  };
  return is(AMPS_F32, float{}) || is(AMPS_F64, double{}) || is(AMPS_I8, int8_t{}) ||
         is(AMPS_I16, int16_t{}) || is(AMPS_I32, int32_t{}) || is(AMPS_I64, int64_t{}) ||
         is(AMPS_U8, uint8_t{}) || is(AMPS_U16, uint16_t{}) || is(AMPS_U32, uint32_t{}) ||
         is(AMPS_U64, uint64_t{});
}

}  // namespace anymps::common
