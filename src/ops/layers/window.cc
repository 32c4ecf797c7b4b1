// SPDX-License-Identifier: Apache-2.0
#include "ops/layers/window.h"

namespace anymps {

namespace {

AutoPad parse_auto_pad(const std::string& text) {
  if (text == "same_upper") return AutoPad::kSameUpper;
  if (text == "same_lower") return AutoPad::kSameLower;
  if (text == "valid") return AutoPad::kValid;
  return AutoPad::kExplicit;
}

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

WindowRule window_rule(const Attrs& attrs, const Dims& kernel) {
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
  return {.op = op,
          .auto_pad = auto_pad,
          .strides = per_axis(attrs, "strides", count, 1, 1),
          .dilations = per_axis(attrs, "dilations", count, 1, 1),
          .pads_begin = {pads.begin(), middle},
          .pads_end = {middle, pads.end()}};
}

WindowRule transposed_rule(const Attrs& attrs, const Dims& kernel) {
  WindowRule rule = window_rule(attrs, kernel);
  rule.output_padding = per_axis(attrs, "output_padding", kernel.size(), 0, 0);
  if (!attrs.ints("output_shape").empty())
    rule.output_shape = per_axis(attrs, "output_shape", kernel.size(), 0, 0);
  return rule;
}

}  // namespace

std::vector<std::string> auto_pad_choices() {
  return {"explicit", "same_upper", "same_lower", "valid"};
}

std::vector<std::string> layout_choices() { return {"channels_first", "channels_last"}; }

OpWriter& window_steps(OpWriter& op) {
  return op.attr("strides", kNoInts, "one for each spatial axis; empty: 1")
      .attr("dilations", kNoInts, "one for each spatial axis; empty: 1");
}

OpWriter& padded_window(OpWriter& op) {
  return op.with(window_steps)
      .attr("pads", kNoInts, "begins, then ends, of the spatial axes; empty: 0");
}

OpWriter& window_auto_pad(OpWriter& op) {
  return op.attr("auto_pad", "explicit", auto_pad_choices(),
                 "other than explicit: pads is ignored");
}

OpWriter& grouped_window(OpWriter& op) {
  return op.with(padded_window).attr("groups", 1).with(window_auto_pad);
}

TensorAxes tensor_axes(const Attrs& attrs, size_t rank) {
  require(rank >= 2, "[{}] a tensor of rank {} has no batch and channel axes", attrs.op()->name,
          rank);
  if (attrs.s("layout") == "channels_last") return {rank - 1, 1, rank - 2};
  return {1, 2, rank - 2};
}

Dims window_outputs(const Attrs& attrs, const Dims& in, const Dims& kernel, bool ceil_mode) {
  return window_outputs(window_rule(attrs, kernel), in, kernel, ceil_mode);
}

Window resolve_window(const Attrs& attrs, const Shape& in, const Shape& kernel) {
  return resolve_window(window_rule(attrs, to_dims(kernel)), in, kernel);
}

Dims transposed_outputs(const Attrs& attrs, const Dims& in, const Dims& kernel) {
  return transposed_outputs(transposed_rule(attrs, kernel), in, kernel);
}

Window resolve_transposed_window(const Attrs& attrs, const Shape& in, const Shape& kernel) {
  return resolve_transposed_window(transposed_rule(attrs, to_dims(kernel)), in, kernel);
}

}  // namespace anymps
