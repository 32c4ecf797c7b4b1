// SPDX-License-Identifier: Apache-2.0
// Types of elements: Paddle's and the engine's, and the sets of them that kernels are for.
#pragma once

#include <cstdint>
#include <optional>

#include <paddle/phi/common/data_type.h>
#include "anymps/anymps.h"

namespace anymps::paddle {

std::optional<amps_dtype> to_engine(phi::DataType dtype);  // nothing: the engine has no such type
phi::DataType to_paddle(amps_dtype dtype);

// Bits by the engine's numbers of the types.
using TypeSet = uint32_t;
constexpr TypeSet bit(amps_dtype dtype) { return TypeSet{1} << dtype; }
inline constexpr TypeSet kHalves = bit(AMPS_F16) | bit(AMPS_BF16);
inline constexpr TypeSet kFloats = bit(AMPS_F32) | bit(AMPS_F64) | kHalves;
inline constexpr TypeSet kWide = bit(AMPS_F32) | bit(AMPS_F64);
inline constexpr TypeSet kInts =
    bit(AMPS_I8) | bit(AMPS_I16) | bit(AMPS_I32) | bit(AMPS_I64) | bit(AMPS_U8);
inline constexpr TypeSet kBool = bit(AMPS_BOOL);
inline constexpr TypeSet kComplex = bit(AMPS_C64) | bit(AMPS_C128);
inline constexpr TypeSet kReals = kFloats | kInts;
inline constexpr TypeSet kNumbers = kReals | kComplex;
inline constexpr TypeSet kAll = kNumbers | kBool;
inline constexpr TypeSet kMoved = kAll;  // kernels that only move elements

}  // namespace anymps::paddle
