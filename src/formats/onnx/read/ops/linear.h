// SPDX-License-Identifier: Apache-2.0
// The converter of the matrix product that fused ops of other domains build on.
#pragma once

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

Value* gemm(Call& c);  // alpha * A' * B' + beta * C

}  // namespace anymps::onnx
