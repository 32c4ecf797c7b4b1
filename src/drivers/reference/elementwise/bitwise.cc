// SPDX-License-Identifier: Apache-2.0
// Reference kernels of work on bits.
#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

#define BITWISE(name) \
  REFERENCE(name) { map_binary<kInt>(args, scalar::name); }
#define BITWISE_UNARY(name) \
  REFERENCE(name) { map_unary<kInt>(args, scalar::name); }

BITWISE(bitwise_and)
BITWISE(bitwise_or)
BITWISE(bitwise_xor)
BITWISE(left_shift)
BITWISE(right_shift)
BITWISE_UNARY(bitwise_not)
BITWISE_UNARY(population_count)

}  // namespace anymps
