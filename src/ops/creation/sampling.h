// SPDX-License-Identifier: Apache-2.0
// The range that the attributes of op `random_integers` describe.
#pragma once

#include "ops/attr.h"

namespace anymps {

struct IntegerRange {
  int64_t low = 0, high = 0;  // both belong to it; low > high: there is none
};
IntegerRange integer_range(const Attrs& attrs);

}  // namespace anymps
