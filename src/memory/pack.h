// SPDX-License-Identifier: Apache-2.0
// Strided memory of the host made contiguous.
#pragma once

#include <cstddef>

#include "base/shape.h"

namespace anymps {

// Elements in row-major order; `from` is the first one's address.
void pack(const TensorDesc& desc, const std::byte* from, std::byte* to);

}  // namespace anymps
