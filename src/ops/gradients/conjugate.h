// SPDX-License-Identifier: Apache-2.0
// The gradient of a real loss to a complex x is dloss/d(Re x) + i dloss/d(Im x). Through a function
// with a complex slope it comes back by the slope's conjugate.
#pragma once

#include "ops/gradient.h"

namespace anymps {

// Real numbers stay as they are.
inline Term conjugated(const Term& value) {
  return value.dtype() == DType::kC64 ? value.op("conjugate") : value;
}

}  // namespace anymps
