// SPDX-License-Identifier: Apache-2.0
// Writes include/anymps/ops.hpp: a builder method for each op, with its attributes as a struct.
#pragma once

#include <string>

namespace anymps::api {

std::string builder_header();

}  // namespace anymps::api
