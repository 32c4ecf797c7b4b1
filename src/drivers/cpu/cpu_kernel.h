// SPDX-License-Identifier: Apache-2.0
// How a kernel of the CPU driver is written: its factory, under the op's name, and what the way is
// called in which it computes:
//   CPU_KERNEL(fill, "plain") { … return make_kernel(…); }
// A KernelRegistrar is for the others: several kernels for an op, or several ops for a factory.
#pragma once

#include "drivers/kernel.h"

#define CPU_KERNEL(op, way)                                                                       \
  static ::anymps::KernelPtr make_##op(const ::anymps::KernelRequest& request, std::string& why); \
  static const ::anymps::KernelRegistrar cpu_kernel_##op("cpu", #op, way, 10, make_##op);         \
  static ::anymps::KernelPtr make_##op(const ::anymps::KernelRequest& request,                    \
                                       [[maybe_unused]] std::string& why)
