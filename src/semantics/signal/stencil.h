// SPDX-License-Identifier: Apache-2.0
// Where the windows of a stencil lie.
#pragma once

#include <vector>

#include "base/shape.h"

namespace anymps {

// As an op describes it, with an entry for each axis of the window.
struct StencilRule {
  enum class Padding { kExplicit, kValid, kSameUpper, kSameLower, kOffset };
  Padding padding = Padding::kExplicit;
  std::vector<int64_t> strides, dilations;
  std::vector<int64_t> pads;  // the begins of all axes, then the ends
  std::vector<int64_t> offsets;
};

struct Stencil {
  Shape out, first, strides, dilations;  // one entry per axis of the window
};

// For the last axes of x, of which `in` are the extents; checked.
Stencil place_stencil(const StencilRule& rule, const Shape& in, const Shape& window);

}  // namespace anymps
