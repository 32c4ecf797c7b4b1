// SPDX-License-Identifier: Apache-2.0
// Inference of elementwise ops: broadcasting, and the arithmetic on shapes that models do with
// small integer tensors (shape -> gather -> mul -> reshape), carried out on symbolic dimensions.
#pragma once

#include <optional>
#include <span>

#include "ops/infer.h"

namespace anymps {

// Output 0: all inputs broadcast together. When the elements of all inputs are known (as numbers
// or symbols) and the op has exact integer arithmetic, those of the output are too.
void infer_elementwise(InferContext& ctx);

// What an op does to integers that are known, beside its record:
//   KNOWN_ELEMENTS(identity) { return x[0]; }
// One element of the result, or nothing when it cannot be told; known operands that would wrap
// tell nothing either.
using Element = std::optional<Dim>;
using ElementFn = Element (*)(const Attrs& attrs, std::span<const Dim> x);
struct KnownElements {
  KnownElements(const char* op, ElementFn fn);
};
#define KNOWN_ELEMENTS(op)                                               \
  static Element known_##op(const Attrs& attrs, std::span<const Dim> x); \
  static const KnownElements known_elements_##op(#op, known_##op);       \
  static Element known_##op([[maybe_unused]] const Attrs& attrs, std::span<const Dim> x)

inline bool both_known(std::span<const Dim> x) { return x[0].known() && x[1].known(); }
// A symbol is made of extents, which are never negative; only a minus can make it so.
bool never_negative(const Dim& dim);

}  // namespace anymps
