// SPDX-License-Identifier: Apache-2.0
// The end of every kernel list: the reference kernel, through copies to the host and back when the
// driver's memory cannot be seen by it.
#pragma once

#include "drivers/driver.h"

namespace anymps {

// Null when the op has no reference kernel.
KernelPtr make_fallback_kernel(Driver& driver, const KernelRequest& request);

// The reference kernel on host memory, whatever the driver: the oracle of ANYMPS_CHECK.
KernelPtr make_oracle_kernel(const KernelRequest& request);
bool reference_exists(const Op& op);

}  // namespace anymps
