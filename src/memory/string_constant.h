// SPDX-License-Identifier: Apache-2.0
// Constants of strings, which own their characters.
#pragma once

#include <string>
#include <vector>

#include "memory/constant.h"

namespace anymps {

ConstantPtr string_constant(Shape shape, std::vector<std::string> values);

}  // namespace anymps
