// SPDX-License-Identifier: Apache-2.0
// What the attributes of resize and of its gradient say.
#pragma once

#include "ops/attr.h"
#include "semantics/signal/resize_coordinates.h"

namespace anymps {

ResizeFilter resize_filter(const Attrs& attrs);
// For tensors of this rank; fails, naming the op, on axes that they do not have.
ResizeRule resize_rule(const Attrs& attrs, size_t rank);

}  // namespace anymps
