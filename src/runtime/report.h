// SPDX-License-Identifier: Apache-2.0
// What compiling did, as JSON for tools and people: passes, steps and kernels, memory.
#pragma once

#include <string>

#include "runtime/executable.h"

namespace anymps {

std::string passes_json(const Executable& executable);
std::string plan_json(const Plan& plan);
std::string memory_json(const Plan& plan);

}  // namespace anymps
