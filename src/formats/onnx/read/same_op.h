// SPDX-License-Identifier: Apache-2.0
// Ops that ONNX and the op table have alike: the record says so (Op::onnx), no function is needed.
#pragma once

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

Values read_same(Call& c, const Op& op);

// The second operand of an elementwise op. Before opset 7 it was laid along the axes of the first
// from `axis` on: gives it the axes of extent 1 that NumPy's rule needs at its end.
Value* aligned(Call& c, Value* a, Value* b);

}  // namespace anymps::onnx
