// SPDX-License-Identifier: Apache-2.0
// The narrow storage types: one byte per element. Decoding is exact; encoding rounds once, to
// nearest even (integers wrap, as casts of integers do everywhere). The float formats follow OCP
// 8-bit floating point (e4m3, e5m2), their "fnuz" forms (no infinity, no -0, NaN is 0x80), OCP
// microscaling (e2m1, e8m0).
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/dtype.h"

namespace anymps {

inline constexpr DTypeSet kNarrowInt =
    bit(DType::kI4) | bit(DType::kU4) | bit(DType::kI2) | bit(DType::kU2);
inline constexpr DTypeSet kNarrowFloat = kNarrow & ~kNarrowInt;
inline bool is_narrow(DType dtype) { return contains(kNarrow, dtype); }

// How a magnitude between two powers of two becomes e8m0. The other formats round to nearest.
enum class NarrowRounding : uint8_t { kUp, kDown, kNearest };

namespace narrow_detail {

struct Format {
  int mantissa;  // bits
  int bias;
  uint8_t sign, max, nan, infinity;  // codes; nan == 0: there is none; infinity: of overflow
  bool unsigned_zero;                // no -0
};

constexpr Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
      return {3, 7, 0x80, 0x7e, 0x7f, 0x7f, false};
    case DType::kF8E5M2:
      return {2, 15, 0x80, 0x7b, 0x7e, 0x7c, false};
    case DType::kF8E4M3FNUZ:
      return {3, 8, 0x80, 0x7f, 0x80, 0x80, true};
    case DType::kF8E5M2FNUZ:
      return {2, 16, 0x80, 0x7f, 0x80, 0x80, true};
    default:
      return {1, 1, 0x08, 0x07, 0, 0x07, false};  // f4e2m1
  }
}

inline float decode_float(DType dtype, uint8_t code) {
  const Format f = format_of(dtype);
  const int magnitude = code & (f.sign - 1);
  const bool negative = code & f.sign;
  const int infinite = f.infinity == f.nan ? -1 : f.infinity;
  const bool nan = f.unsigned_zero ? code == f.nan : magnitude > f.max && magnitude != infinite;
  if (nan) return std::bit_cast<float>(0x7fc00000u | static_cast<uint32_t>(negative) << 31);
  const float sign = negative ? -1.0f : 1.0f;
  if (magnitude > f.max) return sign * INFINITY;
  const int exponent = magnitude >> f.mantissa, fraction = magnitude & ((1 << f.mantissa) - 1);
  const int whole = exponent ? fraction + (1 << f.mantissa) : fraction;
  return sign *
         std::ldexp(static_cast<float>(whole), (exponent ? exponent : 1) - f.bias - f.mantissa);
}

inline double power_of_two(int exponent) {  // in the range of normal doubles
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

inline uint8_t encode_float(const Format& f, double x, bool saturate) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto sign = static_cast<uint8_t>(bits >> 63 ? f.sign : 0);
  const double magnitude = std::abs(x);
  if (magnitude != magnitude)
    return f.unsigned_zero || f.nan == 0 ? f.sign : static_cast<uint8_t>(sign | f.nan);
  const auto over = [&]() -> uint8_t {
    if (saturate) return static_cast<uint8_t>(sign | f.max);
    return f.unsigned_zero ? f.infinity : static_cast<uint8_t>(sign | f.infinity);
  };
  if (magnitude >= 0x1p20) return over();
  const int exponent =
      std::max(static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023, 1 - f.bias);
  // Scaled so that a unit is the distance of neighbours; adding 2^52 rounds to nearest even.
  const double steps = magnitude * power_of_two(f.mantissa - exponent) + 0x1p52 - 0x1p52;
  const int code = ((exponent + f.bias - 1) << f.mantissa) + static_cast<int>(steps);
  if (code > f.max) return over();
  if (code == 0 && f.unsigned_zero) return 0;
  return static_cast<uint8_t>(sign | code);
}

// The sign is dropped; NaN and infinities are NaN.
inline uint8_t encode_e8m0(float x, bool saturate, NarrowRounding rounding) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffff;
  uint32_t exponent = bits >> 23;
  const uint32_t fraction = bits & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  // The smallest power, 2^-127, is a subnormal float: half of the last step lies below it.
  const uint32_t whole = exponent > 0 ? 0 : 0x400000, half = exponent > 0 ? 0x400000 : 0x600000;
  const bool up = rounding == NarrowRounding::kUp        ? fraction > whole
                  : rounding == NarrowRounding::kNearest ? fraction >= half
                                                         : false;
  if (up && !(saturate && exponent == 0xfe)) ++exponent;
  return static_cast<uint8_t>(exponent);
}

}  // namespace narrow_detail

// The low bits of an integer as an element of a narrow integer type.
inline uint8_t wrap_narrow(DType dtype, int64_t x) {
  switch (dtype) {
    case DType::kI4:
      return static_cast<uint8_t>(static_cast<int8_t>(static_cast<uint64_t>(x) << 4) >> 4);
    case DType::kU4:
      return static_cast<uint8_t>(x & 15);
    case DType::kI2:
      return static_cast<uint8_t>(static_cast<int8_t>(static_cast<uint64_t>(x) << 6) >> 6);
    default:
      return static_cast<uint8_t>(x & 3);
  }
}

// The smallest and largest number of a narrow integer type.
constexpr int narrow_low(DType dtype) {
  return dtype == DType::kI4 ? -8 : dtype == DType::kI2 ? -2 : 0;
}
constexpr int narrow_high(DType dtype) {
  return dtype == DType::kI4 ? 7 : dtype == DType::kU4 ? 15 : dtype == DType::kI2 ? 1 : 3;
}

// Every narrow element is exactly a float. Bits that the type does not have are ignored.
inline float decode_narrow(DType dtype, uint8_t code) {
  switch (dtype) {
    case DType::kI4:
    case DType::kI2:
      return static_cast<float>(static_cast<int8_t>(wrap_narrow(dtype, code)));
    case DType::kU4:
    case DType::kU2:
      return static_cast<float>(wrap_narrow(dtype, code));
    case DType::kF8E8M0:
      // As bits: 2^-127 is subnormal, and the calling thread may flush what it computes.
      return std::bit_cast<float>(code == 0xff ? 0x7fc00000u
                                  : code == 0  ? 0x00400000u
                                               : static_cast<uint32_t>(code) << 23);
    default:
      return narrow_detail::decode_float(dtype, code);
  }
}

// Integers: the fraction is dropped, the rest wraps, NaN and infinities are 0. Floats: what is
// beyond the largest number becomes it (saturate), or else the infinity or NaN of the type.
inline uint8_t encode_narrow(DType dtype, double x, bool saturate = true,
                             NarrowRounding rounding = NarrowRounding::kUp) {
  if (contains(kNarrowInt, dtype))
    return wrap_narrow(dtype, std::abs(x) < 0x1p63 ? static_cast<int64_t>(x) : 0);
  if (dtype == DType::kF8E8M0)
    return narrow_detail::encode_e8m0(static_cast<float>(x), saturate, rounding);
  return narrow_detail::encode_float(narrow_detail::format_of(dtype), x, saturate);
}

// Integers: rounded to nearest even and clamped, NaN 0; floats: saturated. What quantizing does.
inline uint8_t quantize_narrow(DType dtype, double x, bool saturate = true) {
  if (!contains(kNarrowInt, dtype)) return encode_narrow(dtype, x, saturate);
  const double whole = std::nearbyint(x);
  const double low = narrow_low(dtype), high = narrow_high(dtype);
  return static_cast<uint8_t>(static_cast<int8_t>(whole > high   ? high
                                                  : whole >= low ? whole
                                                  : whole < low  ? low
                                                                 : 0));
}

// All 256 codes decoded.
inline const std::array<float, 256>& narrow_values(DType dtype) {
  static const auto* const kTables = [] {
    auto* tables = new std::array<std::array<float, 256>, kDTypeCount>();
    for (int t = 0; t < kDTypeCount; ++t)
      if (is_narrow(static_cast<DType>(t)))
        for (int code = 0; code < 256; ++code)
          (*tables)[t][code] = decode_narrow(static_cast<DType>(t), static_cast<uint8_t>(code));
    return tables;
  }();
  return (*kTables)[static_cast<size_t>(dtype)];
}

}  // namespace anymps
