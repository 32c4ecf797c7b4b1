// SPDX-License-Identifier: Apache-2.0
#include "kernels/bounds.h"

#include <algorithm>

#include <c10/util/Exception.h>

namespace anymps::aten {

int64_t bound_within(at::ScalarType type, Bound bound, int64_t number) {
  if (bound == Bound::kNone || !c10::isIntegralType(type, false)) return number;
  const size_t bits = 8 * c10::elementSize(type);
  if (bits >= 64) return number;
  const bool is_signed = c10::isSignedType(type);
  const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const int64_t least = is_signed ? -most - 1 : 0;
  const bool low = bound == Bound::kLow;
  TORCH_CHECK(low ? number <= most : number >= least, "Clamp ", low ? "min" : "max", " value ",
              number, " is outside the representable range of ", type);
  return std::clamp(number, least, most);
}

}  // namespace anymps::aten
