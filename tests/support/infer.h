// SPDX-License-Identifier: Apache-2.0
// Inference of one op on symbolic shapes, for tests: shapes in, the types of the outputs as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/infer.h"

namespace anymps::testing {

inline Dim sym(const char* name) { return Dim::symbol(name); }

using SymbolicShapes = std::vector<std::optional<Dims>>;  // nullopt: an absent optional input

// "f32[N, 4, 8]", or several joined by "; ". Every input is `dtype`.
inline std::string inferred(const char* name, const SymbolicShapes& shapes,
                            const NamedAttrs& attrs = {}, size_t outputs = 1,
                            DType dtype = DType::kF32) {
  const Op& op = get_op(name);
  std::vector<ValueType> types(shapes.size());
  std::vector<const ValueType*> inputs(shapes.size(), nullptr);
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i]) continue;
    types[i] = {dtype, true, *shapes[i], std::nullopt};
    inputs[i] = &types[i];
  }
  std::string text;
  for (const ValueType& type : InferContext::run(op, Attrs(op, attrs), inputs, outputs, ""))
    text += (text.empty() ? "" : "; ") + to_string(type);
  return text;
}

}  // namespace anymps::testing
