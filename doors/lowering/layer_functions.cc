// SPDX-License-Identifier: Apache-2.0
// Layers as frameworks describe them, with the attributes that the engine's ops have.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

bool channels_last(const std::string& format) { return format.size() > 2 && format.back() == 'C'; }

Values layout(Call& c) {
  return {std::string(channels_last(c.part(0).text()) ? "channels_last" : "channels_first")};
}

// pads(given, axes): one number for each axis, or a pair, as begins and then ends.
Ints begins_and_ends(const Ints& given, int64_t axes) {
  Ints pads(2 * axes, 0);
  for (int64_t i = 0; i < axes; ++i) {
    const bool paired = std::ssize(given) == 2 * axes;
    pads[i] = paired ? given[2 * i] : given.at(std::ssize(given) == 1 ? 0 : i);
    pads[axes + i] = paired ? given[2 * i + 1] : pads[i];
  }
  return pads;
}
Values pads(Call& c) { return {begins_and_ends(c.part(0).ints(), c.part(1).integer())}; }

// Of Paddle's names of padding algorithms.
std::string padding(const std::string& name) {
  return name == "SAME" ? "same_upper" : name == "VALID" ? "valid" : "explicit";
}
Values auto_pad(Call& c) { return {padding(c.part(0).text())}; }

// pool(x, kernel, strides, pads, ceil_mode, exclusive, format, type, global, adaptive, algorithm,
// results): as Paddle's pooling kernels have it.
Values pool(Call& c) {
  const Tensor x = c.part(0).tensor();
  const Ints dims = c.builder.dims(x);
  const std::string &format = c.part(6).text(), &type = c.part(7).text();
  const bool last = channels_last(format), maximum = type == "max";
  const std::string form = last ? "channels_last" : "channels_first";
  const int64_t axes = std::ssize(dims) - 2;
  Ints kernel = c.part(1).ints();
  if (c.part(9).flag()) {
    if (kernel.size() == 1) kernel.resize(axes, kernel[0]);
    return c.builder.op(maximum ? "adaptive_max_pool" : "adaptive_avg_pool",
                        std::span(&c.parts[0], 1), {{"output_size", kernel}, {"layout", form}},
                        c.results);
  }
  NamedValues attrs{{"layout", form}, {"ceil_mode", c.part(4)}};
  if (c.part(8).flag()) {
    kernel.assign(dims.begin() + (last ? 1 : 2), dims.end() - (last ? 1 : 0));
  } else {
    if (kernel.size() == 1) kernel.resize(axes, kernel[0]);
    attrs.emplace_back("strides", c.part(2).ints());
    attrs.emplace_back("pads", begins_and_ends(c.part(3).ints(), axes));
    attrs.emplace_back("auto_pad", padding(c.part(10).text()));
  }
  attrs.emplace_back("kernel", kernel);
  if (!maximum) attrs.emplace_back("count_include_pad", !c.part(5).flag());
  return c.builder.op(maximum ? "max_pool" : "avg_pool", std::span(&c.parts[0], 1), attrs,
                      c.results);
}

// resized(x, format, sizes, scales, method, align_corners, align_mode, antialias)
Values resized(Call& c) {
  const Tensor x = c.part(0).tensor();
  const Ints dims = c.builder.dims(x);
  const bool last = channels_last(c.part(1).text());
  const int64_t axes = std::ssize(dims) - 2, first = last ? 1 : 2;
  const std::string& method = c.part(4).text();
  const bool corners = c.part(5).flag(), nearest = method == "nearest";
  Ints sizes = c.part(2).ints();
  sizes.erase(sizes.begin(), sizes.end() - axes);
  Floats scales = c.has(3) ? c.part(3).floats() : Floats();
  if (scales.size() == 1) scales.resize(axes, scales[0]);
  Ints over(axes);
  std::iota(over.begin(), over.end(), first);
  for (int64_t i = 0; i < axes; ++i)
    if (!scales.empty() && scales[i] > 0)
      sizes[i] =
          static_cast<int64_t>(static_cast<float>(dims[first + i]) * static_cast<float>(scales[i]));
  const bool half = !corners && !nearest && (method == "bicubic" || c.part(6).integer() == 0);
  NamedValues attrs{{"sizes", sizes}, {"axes", over}};
  attrs.emplace_back("mode", std::string(nearest               ? "nearest"
                                         : method == "bicubic" ? "cubic"
                                                               : "linear"));
  if (!corners && !scales.empty()) {
    // The scale that was given, not that of the whole extents.
    Floats offsets(axes, 0.0);
    for (int64_t i = 0; i < axes; ++i) {
      if (scales[i] <= 0)
        scales[i] = static_cast<double>(sizes[i]) / static_cast<double>(dims[first + i]);
      if (half) offsets[i] = 0.5 * scales[i] - 0.5;
    }
    attrs.emplace_back("scales", scales);
    attrs.emplace_back("offsets", offsets);
    attrs.emplace_back("coordinate", "scale_offset");
  } else {
    attrs.emplace_back("coordinate", std::string(corners ? "align_corners"
                                                 : half  ? "half_pixel"
                                                         : "asymmetric"));
  }
  if (nearest) attrs.emplace_back("nearest", std::string(corners ? "round_prefer_ceil" : "floor"));
  if (c.has(7)) attrs.emplace_back("antialias", c.part(7));
  return c.builder.op("resize", std::span(&c.parts[0], 1), attrs, 1);
}

// Paddle's order: the innermost axis first, as pairs.
Values spatial_pads(Call& c) {
  const Ints given = c.part(0).ints();
  const int64_t rank = c.part(1).integer(), axes = rank - 2;
  const int64_t first = channels_last(c.part(2).text()) ? 1 : 2;
  Ints pads(2 * rank, 0);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t axis = first + axes - 1 - i;
    pads[axis] = given.at(2 * i);
    pads[rank + axis] = given.at(2 * i + 1);
  }
  return {pads};
}
// Of unfold and fold: one number, one for each axis, or begins and then ends.
Values unfold_pads(Call& c) {
  const Ints given = c.part(0).ints();
  if (given.size() == 4) return {given};
  const int64_t y = given.at(0), x = given.size() > 1 ? given[1] : y;
  return {Ints{y, x, y, x}};
}
// window_pads(paddings, algorithm, x, w, strides, format): as Paddle has them for a convolution.
// For "SAME" they follow from the extents of x, in transposed convolutions too, and dilations count
// as 1.
Values window_pads(Call& c) {
  const std::string& algorithm = c.part(1).text();
  const Ints x = c.builder.dims(c.part(2).tensor()), w = c.builder.dims(c.part(3).tensor()),
             strides = c.part(4).ints();
  const int64_t axes = std::ssize(x) - 2, first = channels_last(c.part(5).text()) ? 1 : 2;
  if (algorithm != "SAME" && algorithm != "VALID") return {begins_and_ends(c.part(0).ints(), axes)};
  Ints pads(2 * axes);
  for (int64_t i = 0; i < axes && algorithm == "SAME"; ++i) {
    const int64_t stride = strides.at(i), extent = x[first + i];
    const int64_t sum =
        std::max((extent + stride - 1) / stride * stride - stride + w[2 + i] - extent, int64_t{0});
    pads[i] = sum / 2;
    pads[axes + i] = sum - sum / 2;
  }
  return {pads};
}

// transposed_padding(x, w, strides, paddings, dilations, output_padding, output_size, format)
Values transposed_padding(Call& c) {
  Ints padding = c.part(5).ints();
  const Ints size = c.part(6).ints(), x = c.builder.dims(c.part(0).tensor()),
             w = c.builder.dims(c.part(1).tensor()), strides = c.part(2).ints(),
             dilations = c.part(4).ints();
  const int64_t axes = std::ssize(x) - 2, first = channels_last(c.part(7).text()) ? 1 : 2;
  if (size.empty()) return {padding};
  const Ints pads = begins_and_ends(c.part(3).ints(), axes);
  padding.assign(axes, 0);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t usual = (x[first + i] - 1) * strides.at(i) - pads[i] - pads[axes + i] +
                          dilations.at(i) * (w[2 + i] - 1) + 1;
    padding[i] = size.at(size.size() == 1 ? 0 : i) - usual;
  }
  return {padding};
}

const Functions registered = {
    {"layout", layout},           {"pads", pads},
    {"auto_pad", auto_pad},       {"pool", pool},
    {"resized", resized},         {"spatial_pads", spatial_pads},
    {"unfold_pads", unfold_pads}, {"transposed_padding", transposed_padding},
    {"window_pads", window_pads}};

}  // namespace

}  // namespace anymps::lowering
