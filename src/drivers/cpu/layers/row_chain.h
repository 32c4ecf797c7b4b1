// SPDX-License-Identifier: Apache-2.0
// Chains of kernels that go by rows (a 1x1 convolution, the depthwise one behind it, the 1x1 one
// behind that), a band of rows at a time: what lies between them stays in a core's cache.
#pragma once

#include <span>

#include "drivers/driver.h"

namespace anymps::cpu {

// Null where the links are as fast one by one.
KernelPtr join_rows(std::span<const ChainLink> links);

}  // namespace anymps::cpu
