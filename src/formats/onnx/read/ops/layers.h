// SPDX-License-Identifier: Apache-2.0
// What the converters of convolutions share; fused ops of other domains build on it too.
#pragma once

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

// In the words of the op table: what all windows have, and that of Conv.
NamedAttrs window_attrs(Call& c);
NamedAttrs convolution_attrs(Call& c);
Value* gemm(Call& c);  // alpha * A' * B' + beta * C

}  // namespace anymps::onnx
