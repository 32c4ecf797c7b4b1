// SPDX-License-Identifier: Apache-2.0
// What quantize and dequantize nodes say of their steps, for passes.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace anymps {

bool is_byte(DType dtype);
bool is_vector(const Value* value);  // of f32; or one number
Value* as_floats(Graph& graph, Value* value);

// What a dequantize node was given: bytes, and one scale or one for each place on an axis.
struct Quantized {
  Value *x = nullptr, *scale = nullptr, *zero = nullptr;  // no zero point: 0
  bool one = true;
  int64_t axis = 0;
};
// Of a quantize or dequantize node; `elements` are the bytes' type.
std::optional<Quantized> steps_of(Graph& graph, const Node& node, DType elements);
// Of the node that made `value`, if it makes numbers of bytes.
std::optional<Quantized> dequantized(Graph& graph, const Value* value);

}  // namespace anymps
