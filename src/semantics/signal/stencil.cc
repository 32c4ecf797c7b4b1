// SPDX-License-Identifier: Apache-2.0
#include "semantics/signal/stencil.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace anymps {

Stencil place_stencil(const StencilRule& rule, const Shape& in, const Shape& window) {
  using Padding = StencilRule::Padding;
  const size_t rank = window.size();
  Stencil stencil;
  const auto& [padding, strides, dilations, pads, offsets] = rule;
  for (size_t i = 0; i < rank; ++i) {
    require(strides[i] > 0 && dilations[i] > 0, "[stencil] strides and dilations must be positive");
    require(window[i] > 0, "[stencil] the window has the extent {} along axis {}", window[i], i);
    int64_t span = 0;
    require(!__builtin_mul_overflow(window[i] - 1, dilations[i], &span) && span < INT64_MAX / 4,
            "[stencil] the window is too large");
    ++span;
    int64_t first = 0, out = 0;
    if (padding == Padding::kExplicit) {
      require(std::abs(pads[i]) < INT64_MAX / 8 && std::abs(pads[rank + i]) < INT64_MAX / 8,
              "[stencil] pads {} and {} are too large", pads[i], pads[rank + i]);
      const int64_t room = in[i] + pads[i] + pads[rank + i] - span;
      require(room >= 0,
              "[stencil] the window spans {} elements of axis {}, which has {} with pads", span, i,
              room + span);
      first = -pads[i];
      out = room / strides[i] + 1;
    } else if (padding == Padding::kValid) {
      require(in[i] >= span, "[stencil] the window spans {} elements of axis {}, which has {}",
              span, i, in[i]);
      out = (in[i] - span) / strides[i] + 1;
    } else {
      out = in[i] == 0 ? 0 : (in[i] - 1) / strides[i] + 1;
      const int64_t total = std::max<int64_t>(0, (out - 1) * strides[i] + span - in[i]);
      if (padding == Padding::kSameUpper) first = -(total / 2);
      if (padding == Padding::kSameLower) first = -(total - total / 2);
      if (padding == Padding::kOffset) first = offsets[i];
    }
    stencil.out.push_back(out);
    stencil.first.push_back(first);
    stencil.strides.push_back(strides[i]);
    stencil.dilations.push_back(dilations[i]);
  }
  return stencil;
}

}  // namespace anymps
