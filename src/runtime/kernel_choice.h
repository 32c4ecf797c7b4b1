// SPDX-License-Identifier: Apache-2.0
// Choosing a kernel: the driver's ordered list, first that accepts wins, reference last.
// ANYMPS_VERBOSE=dispatch prints the choice and why the others refused.
#pragma once

#include <string>

#include "drivers/driver.h"

namespace anymps {

struct KernelChoice {
  KernelPtr kernel;
  std::string name;          // "cpu:onednn", "reference"
  bool is_fallback = false;  // the reference kernel on a driver that is not the reference
};

// Never returns a null kernel: fails with code kUnsupported and the refusals.
KernelChoice choose_kernel(Driver& driver, const KernelRequest& request);

std::string describe(const KernelRequest& request);  // "matmul(f32[1, 8], f32[8, 16])"

// What a run takes, for the profiler.
double flops(const KernelRequest& request);
double bytes_moved(const KernelRequest& request);

// A request to copy elements from one place to another of the same dtype and shape.
KernelRequest copy_request(const TensorDesc& from, const TensorDesc& to, std::string node);

}  // namespace anymps
