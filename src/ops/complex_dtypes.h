// SPDX-License-Identifier: Apache-2.0
// Which complex numbers belong to which real ones.
#pragma once

#include "base/dtype.h"

namespace anymps {

// The dtype of the parts and of the absolute values of a dtype.
inline DType real_dtype(DType dtype) { return dtype == DType::kC64 ? DType::kF32 : dtype; }
// The complex dtype that holds what comes of a dtype.
inline DType complex_dtype([[maybe_unused]] DType dtype) { return DType::kC64; }

}  // namespace anymps
