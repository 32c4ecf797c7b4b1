// SPDX-License-Identifier: Apache-2.0
// Single elements of any dtype, for code that meets one now and then: borders, fills, casts of the
// narrow types and of strings.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "base/narrow.h"
#include "base/string_store.h"
#include "semantics/scalar_functions.h"

namespace anymps {

// Writes a number as an element. The number is of no use to a string, which becomes "".
inline void store_number(DType dtype, double number, void* out) {
  if (is_narrow(dtype)) {
    *static_cast<uint8_t*>(out) = encode_narrow(dtype, number);
  } else if (dtype == DType::kString) {
    *static_cast<Text*>(out) = nullptr;
  } else {
    dispatch<kAny>(dtype, [&]<typename T>() {
      const T value = scalar::convert<T>(number);
      std::memcpy(out, &value, sizeof value);
    });
  }
}

// An element that is not a string, as a real number.
inline double load_number(DType dtype, const void* in) {
  if (is_narrow(dtype))
    return static_cast<double>(decode_narrow(dtype, *static_cast<const uint8_t*>(in)));
  return dispatch<kAny>(dtype, [&]<typename T>() -> double {
    if constexpr (std::is_same_v<T, bool>) {
      return *static_cast<const uint8_t*>(in) != 0;
    } else {
      T value;
      std::memcpy(&value, in, sizeof value);
      return scalar::convert<double>(value);
    }
  });
}

// Numbers as text: integers plainly, floats with the fewest digits that read back as the same
// number, "NaN", "INF", "-INF".
std::string number_text(DType dtype, const void* in);
// Text as a number: plain or scientific notation, NaN and INF in any case. Fails on anything else.
void parse_number(std::string_view text, DType dtype, void* out, bool saturate,
                  NarrowRounding rounding);

}  // namespace anymps
