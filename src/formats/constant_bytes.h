// SPDX-License-Identifier: Apache-2.0
// Elements that lie in a model file -> Constant. Kernels want each element at a multiple of its
// size, no more (they read views, too), and files align as they please: elements that are aligned
// stay where they are, others become a recipe that copies them when a driver asks (usually once, to
// pack them) and drops them again.
#pragma once

#include <memory>
#include <string_view>

#include "memory/constant.h"

namespace anymps {

// `data` must have the size of the elements. Without an owner it is copied; `mapped`: it is a
// mapped file, whose pages may be given back.
ConstantPtr constant_from(DType dtype, Shape shape, std::string_view data,
                          std::shared_ptr<const void> owner, bool mapped);

// Elements of `bits` bits (below 8) of a narrow dtype, the first in the lowest bits of a byte.
ConstantPtr packed_constant_from(DType dtype, Shape shape, int bits, std::string_view data,
                                 std::shared_ptr<const void> owner);

}  // namespace anymps
