// SPDX-License-Identifier: Apache-2.0
// Numbers that bound integers (clamp).
#pragma once

#include <cstdint>

#include <c10/core/ScalarType.h>

namespace anymps::aten {

enum class Bound { kNone, kLow, kHigh };

// What the type does not hold is its end, which bounds nothing; a bound beyond the other end is an
// error, as on the CPU.
int64_t bound_within(at::ScalarType type, Bound bound, int64_t number);

}  // namespace anymps::aten
