// SPDX-License-Identifier: Apache-2.0
// The arithmetic of sliding windows: convolutions and pooling, for inference on symbolic extents
// and for the kernels of every driver on numbers. All vectors have one entry per spatial axis.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/dim.h"

namespace anymps {

enum class AutoPad { kExplicit, kSameUpper, kSameLower, kValid };

// Where the axes of an activation tensor of some rank lie.
struct TensorAxes {
  size_t channel = 1, spatial = 2;  // the first spatial axis; the batch axis is always 0
  size_t count = 0;                 // of spatial axes
};

// A window as an op describes it, checked and with an entry for each axis.
struct WindowRule {
  std::string_view op;  // the op's name, for messages
  AutoPad auto_pad = AutoPad::kExplicit;
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  // Of transposed convolutions alone; no output_shape: it follows from the rest.
  std::vector<int64_t> output_padding, output_shape;
};

// A window over concrete extents, with paddings resolved.
struct Window {
  Shape kernel, strides, dilations, pads_begin, pads_end;

  size_t rank() const { return kernel.size(); }
  // Elements that the window spans along an axis.
  int64_t span(size_t axis) const { return dilations[axis] * (kernel[axis] - 1) + 1; }
  // Padding after the last element that the windows of `out` outputs really reach; with ceil_mode
  // it is larger than pads_end, after a stride that does not fit smaller. May be negative.
  int64_t reach_end(size_t axis, int64_t in, int64_t out) const {
    return (out - 1) * strides[axis] + span(axis) - in - pads_begin[axis];
  }
};

// The extents of the outputs. Fails, naming the op, when a window does not fit.
Dims window_outputs(const WindowRule& rule, const Dims& in, const Dims& kernel, bool ceil_mode);
// The same as numbers, for the spatial extents `in`.
Window resolve_window(const WindowRule& rule, const Shape& in, const Shape& kernel);

// For transposed convolutions.
Dims transposed_outputs(const WindowRule& rule, const Dims& in, const Dims& kernel);
Window resolve_transposed_window(const WindowRule& rule, const Shape& in, const Shape& kernel);

// The entries of one, two or three spatial axes as those of three; `missing` for the first ones.
using Triple = std::array<int64_t, 3>;
inline Triple lift(const Shape& spatial, int64_t missing) {
  Triple triple{missing, missing, missing};
  for (size_t i = 0; i < spatial.size(); ++i) triple[3 - spatial.size() + i] = spatial[i];
  return triple;
}

}  // namespace anymps
