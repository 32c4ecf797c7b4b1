// SPDX-License-Identifier: Apache-2.0
// Torch's table of the dtype that two dtypes are computed in.
#pragma once

#include "base/dtype.h"

namespace anymps::executorch {

DType promote(DType a, DType b);

}  // namespace anymps::executorch
