// SPDX-License-Identifier: Apache-2.0
// What the kernels of resize have in common.
#pragma once

#include "drivers/kernel.h"
#include "ops/signal/resize.h"

namespace anymps::cpu {

// The axes of a resize whose scales, offsets, crop and sizes are known; else nothing and a reason.
std::optional<std::vector<ResizeAxis>> resized_axes(const KernelRequest& request, std::string& why);

// Which of them change: one, or two that follow each other; else none and a reason.
std::vector<size_t> neighbouring_axes(const std::vector<ResizeAxis>& axes, std::string& why);

}  // namespace anymps::cpu
