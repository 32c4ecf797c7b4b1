// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace anymps::aten {

// To be called once, when all ops are registered.
void take_apart();

}  // namespace anymps::aten
