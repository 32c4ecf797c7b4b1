// SPDX-License-Identifier: Apache-2.0
// Chebyshev series. The tables of this folder were fitted to 50 digits and cut below 2^-58 of their
// largest coefficient.
#pragma once

#include <cstddef>

namespace anymps::special {

// The sum of c[k] T_k(t), for t in [-1, 1], by Clenshaw's recurrence.
template <size_t n>
double chebyshev_sum(const double (&c)[n], double t) {
  double next = 0, after = 0;
  for (size_t k = n - 1; k > 0; --k) {
    const double here = 2 * t * next - after + c[k];
    after = next;
    next = here;
  }
  return t * next - after + c[0];
}

}  // namespace anymps::special
