// SPDX-License-Identifier: Apache-2.0
#include "semantics/signal/window.h"

#include <algorithm>

#include "base/error.h"

namespace anymps {

namespace {

bool is_same(AutoPad auto_pad) {
  return auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
}

Dim span_of(const WindowRule& rule, const Dim& kernel, size_t axis) {
  return Dim(rule.dilations[axis]) * (kernel - 1) + 1;
}

// Of a transposed convolution before its paddings are cut off, and less `cut`. Here and below the
// constants are summed first: a symbol then appears once, and equal extents look equal.
Dim transposed_extent(const WindowRule& rule, const Dim& output_padding, const Dim& in,
                      const Dim& kernel, size_t axis, const Dim& cut) {
  const Dim stride = rule.strides[axis];
  return in * stride + (span_of(rule, kernel, axis) + output_padding - stride - cut);
}

}  // namespace

Dims window_outputs(const WindowRule& rule, const Dims& in, const Dims& kernel, bool ceil_mode) {
  Dims out;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim stride = rule.strides[i];
    if (is_same(rule.auto_pad)) {
      out.push_back(floor_div(in[i] + (stride - 1), stride));
      continue;
    }
    const Dim span = span_of(rule, kernel[i], i);
    const Dim padding = Dim(rule.pads_begin[i]) + rule.pads_end[i];
    // Rounded up, less than a stride may be missing from the first window too.
    const Dim reach = in[i] + padding + (ceil_mode ? stride - 1 : Dim(0));
    if (reach.known() && span.known() && span.value() > reach.value()) [[unlikely]]
      require(false,
              "[{}] a window that spans {} elements does not fit into spatial axis {} of extent {} "
              "with {} elements of padding",
              rule.op, span.str(), i, in[i].str(), padding.str());
    // floor((padded - span) / stride) + 1, as one quotient.
    const Dim room = padding - span + stride;
    if (ceil_mode) {
      // A window must start inside the input or the padding before it.
      const Dim starts = floor_div(in[i] + (stride + rule.pads_begin[i] - 1), stride);
      out.push_back(min(floor_div(in[i] + (room + stride - 1), stride), starts));
    } else {
      out.push_back(floor_div(in[i] + room, stride));
    }
  }
  return out;
}

Window resolve_window(const WindowRule& rule, const Shape& in, const Shape& kernel) {
  std::vector<int64_t> begin = rule.pads_begin, end = rule.pads_end;
  if (is_same(rule.auto_pad)) {
    for (size_t i = 0; i < kernel.size(); ++i) {
      const Dim out = ceil_div(Dim(in[i]), rule.strides[i]);
      const Dim used = (out - 1) * rule.strides[i] + span_of(rule, kernel[i], i);
      const int64_t total = std::max<int64_t>(0, (used - in[i]).value());
      const int64_t less = total / 2, more = total - less;
      begin[i] = rule.auto_pad == AutoPad::kSameUpper ? less : more;
      end[i] = rule.auto_pad == AutoPad::kSameUpper ? more : less;
    }
  }
  return {kernel, Shape(rule.strides), Shape(rule.dilations), Shape(begin), Shape(end)};
}

Dims transposed_outputs(const WindowRule& rule, const Dims& in, const Dims& kernel) {
  if (!rule.output_shape.empty()) return {rule.output_shape.begin(), rule.output_shape.end()};
  Dims out;
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (is_same(rule.auto_pad)) {
      out.push_back(in[i] * rule.strides[i]);
      continue;
    }
    const Dim cut = Dim(rule.pads_begin[i]) + rule.pads_end[i];
    const Dim extent = transposed_extent(rule, rule.output_padding[i], in[i], kernel[i], i, cut);
    if (extent.known() && extent.value() < 0) [[unlikely]]
      require(false, "[{}] the paddings {} and {} of spatial axis {} are more than its extent {}",
              rule.op, rule.pads_begin[i], rule.pads_end[i], i, (extent + cut).str());
    out.push_back(extent);
  }
  return out;
}

Window resolve_transposed_window(const WindowRule& rule, const Shape& in, const Shape& kernel) {
  const Dims kernel_dims = to_dims(kernel),
             out = transposed_outputs(rule, to_dims(in), kernel_dims);
  std::vector<int64_t> begin = rule.pads_begin, end = rule.pads_end;
  if (is_same(rule.auto_pad) || !rule.output_shape.empty()) {
    for (size_t i = 0; i < kernel.size(); ++i) {
      const Dim cut = transposed_extent(rule, rule.output_padding[i], in[i], kernel[i], i, out[i]);
      const int64_t total = std::max<int64_t>(0, cut.value());
      const int64_t less = total / 2, more = total - less;
      begin[i] = rule.auto_pad == AutoPad::kSameUpper ? less : more;
      end[i] = rule.auto_pad == AutoPad::kSameUpper ? more : less;
    }
  }
  return {kernel, Shape(rule.strides), Shape(rule.dilations), Shape(begin), Shape(end)};
}

}  // namespace anymps
