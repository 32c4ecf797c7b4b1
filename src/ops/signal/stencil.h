// SPDX-License-Identifier: Apache-2.0
// Where the windows of a stencil lie.
#pragma once

#include "base/shape.h"
#include "ops/attr.h"

namespace anymps {

struct Stencil {
  Shape out, first, strides, dilations;  // one entry an axis of the window
};

// From the op's attributes, for the last axes of x; checked.
Stencil stencil_of(const Attrs& attrs, const Shape& in, const Shape& window);

}  // namespace anymps
