// SPDX-License-Identifier: Apache-2.0
// The attributes that describe sliding windows, read and checked; what they mean is in
// semantics/signal/window.h.
#pragma once

#include <string>
#include <vector>

#include "ops/infer.h"
#include "semantics/signal/window.h"

namespace anymps {

std::vector<std::string> auto_pad_choices();
std::vector<std::string> layout_choices();
inline constexpr const char* kImageDoc = "[N, C, spatial…], or [N, spatial…, C] for channels_last";

// Parts of a record: the attributes that have one meaning wherever there is a window.
OpWriter& window_steps(OpWriter& op);   // strides and dilations
OpWriter& padded_window(OpWriter& op);  // the same, and pads
OpWriter& window_auto_pad(OpWriter& op);
OpWriter& grouped_window(OpWriter& op);  // all of these, and groups

TensorAxes tensor_axes(const Attrs& attrs, size_t rank);  // reads `layout`

// The extents of the outputs. Reads strides, dilations, pads and auto_pad, and checks them; fails,
// naming the op, when a window does not fit.
Dims window_outputs(const Attrs& attrs, const Dims& in, const Dims& kernel, bool ceil_mode = false);
// The same attributes as numbers, for the spatial extents `in`.
Window resolve_window(const Attrs& attrs, const Shape& in, const Shape& kernel);

// For transposed convolutions, which also read output_padding and output_shape.
Dims transposed_outputs(const Attrs& attrs, const Dims& in, const Dims& kernel);
Window resolve_transposed_window(const Attrs& attrs, const Shape& in, const Shape& kernel);

}  // namespace anymps
