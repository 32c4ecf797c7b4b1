// SPDX-License-Identifier: Apache-2.0
// Element types, sets of them, and the one place that maps a run-time type to a C++ type.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/half.h"

namespace anymps {

// The numbers are part of the C ABI (amps_dtype) and of the .mps format, and never change.
enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kF64 = 3,
  kI8 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kU8 = 8,
  kU16 = 9,
  kU32 = 10,
  kU64 = 11,
  kBool = 12,
  kC64 = 13,
  // Narrow types, for storage: one byte per element in memory, packed in files. They can be moved,
  // cast, quantized and dequantized.
  kI4 = 14,
  kU4 = 15,
  kI2 = 16,
  kU2 = 17,
  kF8E4M3 = 18,  // no infinity
  kF8E5M2 = 19,
  kF8E4M3FNUZ = 20,  // no infinity, no -0
  kF8E5M2FNUZ = 21,
  kF8E8M0 = 22,  // powers of two
  kF4E2M1 = 23,
  kString = 24,  // a Text of base/string_store.h
  kC128 = 25,    // numbers are given in the order in which types came
};
inline constexpr int kDTypeCount = 26;
// What ops compute with: all but the narrow types and strings.
inline constexpr std::array<DType, 15> kComputeDTypes = {
    DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
    DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
    DType::kU32, DType::kU64, DType::kBool, DType::kC64, DType::kC128};

const char* name(DType dtype);             // "f32"
DType parse_dtype(std::string_view text);  // accepts "f32", "float32", "fp32", …
size_t size_of(DType dtype);               // bytes of an element

// A set of dtypes, as a bit mask: what an op's input accepts.
using DTypeSet = uint32_t;
constexpr DTypeSet bit(DType dtype) { return 1u << static_cast<int>(dtype); }
constexpr bool contains(DTypeSet set, DType dtype) { return set & bit(dtype); }
std::string to_string(DTypeSet set);

inline constexpr DTypeSet kFloat =
    bit(DType::kF32) | bit(DType::kF16) | bit(DType::kBF16) | bit(DType::kF64);
inline constexpr DTypeSet kPrecise = bit(DType::kF32) | bit(DType::kF64);
inline constexpr DTypeSet kSigned =
    bit(DType::kI8) | bit(DType::kI16) | bit(DType::kI32) | bit(DType::kI64);
inline constexpr DTypeSet kUnsigned =
    bit(DType::kU8) | bit(DType::kU16) | bit(DType::kU32) | bit(DType::kU64);
inline constexpr DTypeSet kInt = kSigned | kUnsigned;
inline constexpr DTypeSet kBoolean = bit(DType::kBool);
inline constexpr DTypeSet kComplex = bit(DType::kC64) | bit(DType::kC128);
inline constexpr DTypeSet kReal = kFloat | kInt;
inline constexpr DTypeSet kOrdered = kReal | kBoolean;
inline constexpr DTypeSet kNumber = kReal | kComplex;
inline constexpr DTypeSet kAny = kNumber | kBoolean;
inline constexpr DTypeSet kNarrow = bit(DType::kI4) | bit(DType::kU4) | bit(DType::kI2) |
                                    bit(DType::kU2) | bit(DType::kF8E4M3) | bit(DType::kF8E5M2) |
                                    bit(DType::kF8E4M3FNUZ) | bit(DType::kF8E5M2FNUZ) |
                                    bit(DType::kF8E8M0) | bit(DType::kF4E2M1);
inline constexpr DTypeSet kText = bit(DType::kString);
inline constexpr DTypeSet kEvery = kAny | kNarrow | kText;  // for ops that only move elements
inline constexpr DTypeSet kIndex = bit(DType::kI32) | bit(DType::kI64);

inline bool is_float(DType dtype) { return contains(kFloat, dtype); }
inline bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
inline bool is_int(DType dtype) { return contains(kInt, dtype); }
inline bool is_complex(DType dtype) { return contains(kComplex, dtype); }

using Complex = std::complex<float>;
using WideComplex = std::complex<double>;
template <typename T>
inline constexpr bool kIsComplexType = std::is_same_v<T, Complex> || std::is_same_v<T, WideComplex>;

// The dtype of the parts and of the absolute values of a dtype.
constexpr DType real_dtype(DType dtype) {
  return dtype == DType::kC64 ? DType::kF32 : dtype == DType::kC128 ? DType::kF64 : dtype;
}
// The complex dtype that holds what comes of a dtype.
constexpr DType complex_dtype(DType dtype) {
  return real_dtype(dtype) == DType::kF64 ? DType::kC128 : DType::kC64;
}

// Storage type -> DType.
template <typename T>
inline constexpr DType dtype_of = DType::kF32;
template <>
inline constexpr DType dtype_of<Half> = DType::kF16;
template <>
inline constexpr DType dtype_of<BFloat> = DType::kBF16;
template <>
inline constexpr DType dtype_of<double> = DType::kF64;
template <>
inline constexpr DType dtype_of<int8_t> = DType::kI8;
template <>
inline constexpr DType dtype_of<int16_t> = DType::kI16;
template <>
inline constexpr DType dtype_of<int32_t> = DType::kI32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::kI64;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::kU8;
template <>
inline constexpr DType dtype_of<uint16_t> = DType::kU16;
template <>
inline constexpr DType dtype_of<uint32_t> = DType::kU32;
template <>
inline constexpr DType dtype_of<uint64_t> = DType::kU64;
template <>
inline constexpr DType dtype_of<bool> = DType::kBool;
template <>
inline constexpr DType dtype_of<Complex> = DType::kC64;
template <>
inline constexpr DType dtype_of<WideComplex> = DType::kC128;

// The type in which values of storage type T are computed: halves in float, the rest as they are.
template <typename T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Half> {
  using type = float;
};
template <>
struct ComputeOf<BFloat> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeOf<T>::type;

// Calls fn.template operator()<T>() with the C++ type of dtype, if it is in the set `allowed`
// (a compile-time set keeps what is instantiated small); fails otherwise.
template <DTypeSet allowed, typename Fn>
decltype(auto) dispatch(DType dtype, Fn&& fn) {
#define ANYMPS_CASE(D, T)                                                          \
  case DType::D:                                                                   \
    if constexpr (contains(allowed, DType::D)) return fn.template operator()<T>(); \
    break;
  switch (dtype) {
    ANYMPS_CASE(kF32, float)
    ANYMPS_CASE(kF16, Half)
    ANYMPS_CASE(kBF16, BFloat)
    ANYMPS_CASE(kF64, double)
    ANYMPS_CASE(kI8, int8_t)
    ANYMPS_CASE(kI16, int16_t)
    ANYMPS_CASE(kI32, int32_t)
    ANYMPS_CASE(kI64, int64_t)
    ANYMPS_CASE(kU8, uint8_t)
    ANYMPS_CASE(kU16, uint16_t)
    ANYMPS_CASE(kU32, uint32_t)
    ANYMPS_CASE(kU64, uint64_t)
    ANYMPS_CASE(kBool, bool)
    ANYMPS_CASE(kC64, Complex)
    ANYMPS_CASE(kC128, WideComplex)
    default:
      break;
  }
#undef ANYMPS_CASE
  fail(Code::kUnsupported, "dtype {} is not one of {}", name(dtype), to_string(allowed));
}

}  // namespace anymps
