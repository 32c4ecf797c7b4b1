// SPDX-License-Identifier: Apache-2.0
// ANYMPS_STRICT_MPS=1, or a version of PyTorch: refuse what Apple's MPS refuses, so that a run here
// tells what a Mac would say.
#pragma once

#include <string_view>

#include <c10/core/ScalarType.h>

namespace anymps::aten {

bool strict();
void set_strict(bool on);

void check_allowed_on_a_mac(c10::ScalarType type);  // in strict mode alone
// Whether PyTorch's own MPS backend, in the version asked for, has a kernel for an op ("add.out").
bool has_kernel_on_a_mac(std::string_view name);

}  // namespace anymps::aten
