// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/shape.h"
#include "ops/attr.h"

namespace anymps {

// How far the elements of each axis go round, in [0, extent); of the axes that the attributes name.
std::vector<int64_t> roll_shifts(const Attrs& attrs, const Shape& shape);

}  // namespace anymps
