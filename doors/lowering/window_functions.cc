// SPDX-License-Identifier: Apache-2.0
// Windows, borders and new sizes as PyTorch's layers give them: lists that may be short, the
// innermost axis first, and scales beside sizes.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

// per_axis(given, axes, otherwise): a number for each axis, from a list of them, of one for all, or
// of none.
Values per_axis(Call& c) {
  Ints given = c.part(0).ints();
  if (given.empty() && c.has(2)) given = c.part(2).ints();
  if (given.size() == 1) given.resize(c.part(1).integer(), given[0]);
  if (std::ssize(given) != c.part(1).integer())
    throw std::invalid_argument("one number is expected for each spatial axis");
  return {given};
}

// trailing_pads(given, rank): pairs, the last axis first, as the begins of all axes and then the
// ends.
Values trailing_pads(Call& c) {
  const Ints given = c.part(0).ints();
  const int64_t rank = c.part(1).integer();
  Ints pads(2 * rank, 0);
  for (int64_t i = 0; i < std::ssize(given) / 2; ++i) {
    pads.at(rank - 1 - i) = given[2 * i];
    pads.at(2 * rank - 1 - i) = given[2 * i + 1];
  }
  return {pads};
}

// transposed_window(dy, padding, output_padding): the gradient of a transposed convolution's
// result, and the pads with which a convolution of it has the extents of the input. What was added
// at the end counts as less padding there, and beyond the padding it is nothing's result.
Values transposed_window(Call& c) {
  const Tensor dy = c.part(0).tensor();
  Ints ends = c.builder.dims(dy);
  const auto axes = std::ssize(ends) - 2;
  const Ints padding = c.part(1).ints(), added = c.part(2).ints();
  Ints pads(2 * axes, 0);
  bool cut = false;
  for (int64_t i = 0; i < axes; ++i) {
    pads[i] = padding.at(padding.size() == 1 ? 0 : i);
    const int64_t end = pads[i] - added.at(added.size() == 1 ? 0 : i);
    pads[axes + i] = std::max<int64_t>(end, 0);
    ends[2 + i] += std::min<int64_t>(end, 0);
    cut = cut || end < 0;
  }
  if (!cut) return {dy, pads};
  return {c.builder.op("slice", {dy}, {{"starts", Ints(ends.size(), 0)}, {"ends", ends}}), pads};
}

// From the first element to the first and from the last to the last; all from the first where there
// is but one.
double aligned_scale(double from, double to) {
  constexpr double kAllFromFirst = 1e9;
  return from > 1 && to > 1 ? (to - 1) / (from - 1) : kAllFromFirst;
}

// What resize makes of PyTorch's arguments: sizes, scales (each may be absent), 'nearest',
// 'nearest_exact', 'linear' or 'cubic', align_corners, antialias.
NamedValues resize_attrs(const Ints& dims, const Ints& sizes, const Values& scales,
                         const std::string& mode, bool corners, bool antialias) {
  const auto axes = std::ssize(sizes), first = std::ssize(dims) - axes;
  const bool nearest = mode == "nearest", exact = mode == "nearest_exact";
  Ints over(axes);
  std::iota(over.begin(), over.end(), first);
  NamedValues attrs{
      {"sizes", sizes}, {"axes", over}, {"mode", exact ? std::string("nearest") : mode}};
  const auto given = [&](int64_t i) {
    return i < std::ssize(scales) && !scales[i].absent() && scales[i].number() > 0;
  };
  bool any = false;
  for (int64_t i = 0; i < axes; ++i) any = any || given(i);
  if (corners ? antialias : any) {
    // The scale that was given, not that of the whole extents. PyTorch's filters keep the middles
    // of elements apart by the scale of aligned corners, but begin half an element inside all the
    // same.
    Floats factors, offsets;
    for (int64_t i = 0; i < axes; ++i) {
      const auto from = static_cast<double>(dims[first + i]), to = static_cast<double>(sizes[i]);
      factors.push_back(corners    ? aligned_scale(from, to)
                        : given(i) ? scales[i].number()
                                   : to / from);
      offsets.push_back(nearest ? 0.0 : 0.5 * factors[i] - 0.5);
    }
    attrs.emplace_back("scales", factors);
    attrs.emplace_back("offsets", offsets);
    attrs.emplace_back("coordinate", "scale_offset");
  } else {
    attrs.emplace_back("coordinate", corners   ? "align_corners"
                                     : nearest ? "asymmetric"
                                               : "half_pixel");
  }
  if (nearest || exact) attrs.emplace_back("nearest", nearest ? "floor" : "round_prefer_ceil");
  if (antialias) {
    attrs.emplace_back("antialias", true);
    attrs.emplace_back("exclude_outside", true);
    attrs.emplace_back("cubic_coeff_a", -0.5);
  }
  return attrs;
}

NamedValues resize_attrs(const Call& c, const Ints& dims) {
  Values scales;
  if (const auto* list = std::get_if<Values>(&c.part(2)))
    scales = *list;
  else
    for (const double scale : c.part(2).floats()) scales.emplace_back(scale);
  return resize_attrs(dims, c.part(1).ints(), scales, c.part(3).text(),
                      c.has(4) && c.part(4).flag(), c.has(5) && c.part(5).flag());
}

// upsampled(x, sizes, scales, mode, align_corners, antialias)
Values upsampled(Call& c) {
  return c.builder.op("resize", std::span(&c.parts[0], 1),
                      resize_attrs(c, c.builder.dims(c.part(0).tensor())), 1);
}
// upsampled_gradient(dy, sizes, scales, mode, align_corners, antialias, dims): to an x of these
// dims.
Values upsampled_gradient(Call& c) {
  const Ints dims = c.part(6).ints();
  const Tensor dy = c.part(0).tensor();
  const Value x =
      c.builder.op("expand", {c.builder.number(0.0, c.builder.dtype(dy))}, {{"shape", dims}});
  return {c.builder.op("resize_gradient", {dy, x}, resize_attrs(c, dims))};
}

const Functions registered = {{"per_axis", per_axis},
                              {"trailing_pads", trailing_pads},
                              {"transposed_window", transposed_window},
                              {"upsampled", upsampled},
                              {"upsampled_gradient", upsampled_gradient}};

}  // namespace

}  // namespace anymps::lowering
