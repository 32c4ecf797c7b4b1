// SPDX-License-Identifier: Apache-2.0
// What fell back to the CPU: how often, how many bytes of tensors were handed over, how long it
// took.
#pragma once

#include <cstddef>

#include <ATen/core/operator_name.h>

namespace anymps::aten {

void report_fallback(const c10::OperatorName& op, size_t bytes, double milliseconds);

}  // namespace anymps::aten
