// SPDX-License-Identifier: Apache-2.0
#include "ops/layers/window.h"

#include <algorithm>

namespace anymps {

namespace {

// The attributes of a window, checked, with defaults filled in.
struct WindowAttrs {
  const std::string& op;
  AutoPad auto_pad;
  std::vector<int64_t> strides, dilations, begin, end;
};

std::vector<int64_t> per_axis(const Attrs& attrs, const char* attr, size_t count, int64_t fallback,
                              int64_t least) {
  std::vector<int64_t> values = attrs.ints(attr);
  if (values.empty()) values.assign(count, fallback);
  require(values.size() == count,
          "[{}] {} has {} entries, must have one for each of {} spatial axes", attrs.op()->name,
          attr, values.size(), count);
  for (const int64_t value : values)
    require(value >= least, "[{}] {} has the entry {}, must be at least {}", attrs.op()->name, attr,
            value, least);
  return values;
}

WindowAttrs read(const Attrs& attrs, const Dims& kernel) {
  const std::string& op = attrs.op()->name;
  const size_t count = kernel.size();
  for (const Dim& extent : kernel)
    require(!extent.known() || extent.value() > 0, "[{}] the kernel {} must be positive", op,
            to_string(kernel));
  std::vector<int64_t> pads = attrs.ints("pads");
  const AutoPad auto_pad = parse_auto_pad(attrs.s("auto_pad"));
  if (pads.empty() || auto_pad != AutoPad::kExplicit) pads.assign(2 * count, 0);
  require(pads.size() == 2 * count,
          "[{}] pads has {} entries, must have a begin and an end for each of {} spatial axes", op,
          pads.size(), count);
  for (const int64_t pad : pads)
    require(pad >= 0, "[{}] pads has the entry {}, must not be negative", op, pad);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(count);
  return {op,
          auto_pad,
          per_axis(attrs, "strides", count, 1, 1),
          per_axis(attrs, "dilations", count, 1, 1),
          {pads.begin(), middle},
          {middle, pads.end()}};
}

bool is_same(AutoPad auto_pad) {
  return auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
}

Dim span_of(const WindowAttrs& window, const Dim& kernel, size_t axis) {
  return Dim(window.dilations[axis]) * (kernel - 1) + 1;
}

// Of a transposed convolution before its paddings are cut off, and less `cut`. Here and below the
// constants are summed first: a symbol then appears once, and equal extents look equal.
Dim transposed_extent(const WindowAttrs& window, const Dim& output_padding, const Dim& in,
                      const Dim& kernel, size_t axis, const Dim& cut) {
  const Dim stride = window.strides[axis];
  return in * stride + (span_of(window, kernel, axis) + output_padding - stride - cut);
}

}  // namespace

AutoPad parse_auto_pad(const std::string& text) {
  if (text == "same_upper") return AutoPad::kSameUpper;
  if (text == "same_lower") return AutoPad::kSameLower;
  if (text == "valid") return AutoPad::kValid;
  return AutoPad::kExplicit;
}

std::vector<std::string> auto_pad_choices() {
  return {"explicit", "same_upper", "same_lower", "valid"};
}

std::vector<std::string> layout_choices() { return {"channels_first", "channels_last"}; }

TensorAxes tensor_axes(const Attrs& attrs, size_t rank) {
  require(rank >= 2, "[{}] a tensor of rank {} has no batch and channel axes", attrs.op()->name,
          rank);
  if (attrs.s("layout") == "channels_last") return {rank - 1, 1, rank - 2};
  return {1, 2, rank - 2};
}

Dims window_outputs(const Attrs& attrs, const Dims& in, const Dims& kernel, bool ceil_mode) {
  const WindowAttrs window = read(attrs, kernel);
  Dims out;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim stride = window.strides[i];
    if (is_same(window.auto_pad)) {
      out.push_back(floor_div(in[i] + (stride - 1), stride));
      continue;
    }
    const Dim span = span_of(window, kernel[i], i);
    const Dim padding = Dim(window.begin[i]) + window.end[i];
    // Rounded up, less than a stride may be missing from the first window too.
    const Dim reach = in[i] + padding + (ceil_mode ? stride - 1 : Dim(0));
    if (reach.known() && span.known() && span.value() > reach.value()) [[unlikely]]
      require(false,
              "[{}] a window that spans {} elements does not fit into spatial axis {} of extent {} "
              "with {} elements of padding",
              window.op, span.str(), i, in[i].str(), padding.str());
    // floor((padded - span) / stride) + 1, as one quotient.
    const Dim room = padding - span + stride;
    if (ceil_mode) {
      // A window must start inside the input or the padding before it.
      const Dim starts = floor_div(in[i] + (stride + window.begin[i] - 1), stride);
      out.push_back(min(floor_div(in[i] + (room + stride - 1), stride), starts));
    } else {
      out.push_back(floor_div(in[i] + room, stride));
    }
  }
  return out;
}

Window resolve_window(const Attrs& attrs, const Shape& in, const Shape& kernel) {
  WindowAttrs window = read(attrs, to_dims(kernel));
  if (is_same(window.auto_pad)) {
    for (size_t i = 0; i < kernel.size(); ++i) {
      const Dim out = ceil_div(Dim(in[i]), window.strides[i]);
      const Dim used = (out - 1) * window.strides[i] + span_of(window, kernel[i], i);
      const int64_t total = std::max<int64_t>(0, (used - in[i]).value());
      const int64_t less = total / 2, more = total - less;
      window.begin[i] = window.auto_pad == AutoPad::kSameUpper ? less : more;
      window.end[i] = window.auto_pad == AutoPad::kSameUpper ? more : less;
    }
  }
  return {kernel, Shape(window.strides), Shape(window.dilations), Shape(window.begin),
          Shape(window.end)};
}

Dims transposed_outputs(const Attrs& attrs, const Dims& in, const Dims& kernel) {
  const WindowAttrs window = read(attrs, kernel);
  const std::vector<int64_t> extra = per_axis(attrs, "output_padding", kernel.size(), 0, 0);
  if (!attrs.ints("output_shape").empty()) {
    const std::vector<int64_t> given = per_axis(attrs, "output_shape", kernel.size(), 0, 0);
    return {given.begin(), given.end()};
  }
  Dims out;
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (is_same(window.auto_pad)) {
      out.push_back(in[i] * window.strides[i]);
      continue;
    }
    const Dim cut = Dim(window.begin[i]) + window.end[i];
    const Dim extent = transposed_extent(window, extra[i], in[i], kernel[i], i, cut);
    if (extent.known() && extent.value() < 0) [[unlikely]]
      require(false, "[{}] the paddings {} and {} of spatial axis {} are more than its extent {}",
              window.op, window.begin[i], window.end[i], i, (extent + cut).str());
    out.push_back(extent);
  }
  return out;
}

Window resolve_transposed_window(const Attrs& attrs, const Shape& in, const Shape& kernel) {
  const Dims kernel_dims = to_dims(kernel),
             out = transposed_outputs(attrs, to_dims(in), kernel_dims);
  WindowAttrs window = read(attrs, kernel_dims);
  const std::vector<int64_t> extra = per_axis(attrs, "output_padding", kernel.size(), 0, 0);
  if (is_same(window.auto_pad) || !attrs.ints("output_shape").empty()) {
    for (size_t i = 0; i < kernel.size(); ++i) {
      const Dim cut = transposed_extent(window, extra[i], in[i], kernel[i], i, out[i]);
      const int64_t total = std::max<int64_t>(0, cut.value());
      const int64_t less = total / 2, more = total - less;
      window.begin[i] = window.auto_pad == AutoPad::kSameUpper ? less : more;
      window.end[i] = window.auto_pad == AutoPad::kSameUpper ? more : less;
    }
  }
  return {kernel, Shape(window.strides), Shape(window.dilations), Shape(window.begin),
          Shape(window.end)};
}

}  // namespace anymps
