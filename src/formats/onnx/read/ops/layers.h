// SPDX-License-Identifier: Apache-2.0
// Converters of convolution and matrix product that fused ops of other domains build on.
#pragma once

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

NamedAttrs convolution_attrs(Call& c);  // of Conv, in the words of the op table
Value* gemm(Call& c);                   // alpha * A' * B' + beta * C

}  // namespace anymps::onnx
