// SPDX-License-Identifier: Apache-2.0
// Tensors as upstream's runner prints them: tensor(sizes=[1, 1000], [ ... ]), ten elements per
// line, the first and the last hundred of a long one.
#pragma once

#include <string>

#include "common/npy.h"

namespace anymps::runner {

std::string tensor_text(const common::Array& array, size_t edge = 100);

}  // namespace anymps::runner
