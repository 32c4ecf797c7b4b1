// SPDX-License-Identifier: Apache-2.0
// Halves through f32: a kernel for f32 between conversions, for processors or libraries that do
// not compute in a half type. Sums are then in f32, as they must be.
#pragma once

#include "drivers/kernel.h"

namespace anymps::cpu {

// A kernel for `request` made of the one that `make` gives for f32; null and a reason if none.
KernelPtr widened(const KernelRequest& request, const KernelFactory& make, std::string& why);

}  // namespace anymps::cpu
