// SPDX-License-Identifier: Apache-2.0
// The windows that the attributes of a stencil describe.
#pragma once

#include "ops/attr.h"
#include "semantics/stencil.h"

namespace anymps {

// For the last axes of x; checked.
Stencil stencil_of(const Attrs& attrs, const Shape& in, const Shape& window);

}  // namespace anymps
