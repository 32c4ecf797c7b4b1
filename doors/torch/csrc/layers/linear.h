// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace anymps::aten {

// To be called when the device's own kernel is registered.
void take_linear_apart_for_dual_numbers();

}  // namespace anymps::aten
