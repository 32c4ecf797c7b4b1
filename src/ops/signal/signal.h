// SPDX-License-Identifier: Apache-2.0
// What the attributes of Fourier ops ask for.
#pragma once

#include <vector>

#include "ops/op.h"
#include "semantics/signal/spectrum.h"

namespace anymps {

// Of fft, real_to_hermitean_fft and hermitean_to_real_fft over these axes, which are checked.
SpectrumPlan fft_plan(const Attrs& attrs, const Shape& x, const Shape& y,
                      const std::vector<int64_t>& axes);
// Of dft, without the axis of components; length 0: what x has.
SpectrumPlan dft_plan(const Attrs& attrs, const Shape& x, const Shape& y, int64_t axis,
                      int64_t length);

}  // namespace anymps
