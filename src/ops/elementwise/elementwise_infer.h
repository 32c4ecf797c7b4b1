// SPDX-License-Identifier: Apache-2.0
// Inference of elementwise ops: broadcasting, and the arithmetic on shapes that models do with
// small integer tensors (shape -> gather -> mul -> reshape), carried out on symbolic dimensions.
#pragma once

#include "ops/infer.h"

namespace anymps {

// Output 0: all inputs broadcast together. When the elements of all inputs are known (as numbers
// or symbols) and the op has exact integer arithmetic, those of the output are too.
void infer_elementwise(InferContext& ctx);

}  // namespace anymps
