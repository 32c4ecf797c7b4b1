// SPDX-License-Identifier: Apache-2.0
// Interpolation of torch: upsampling by sizes or scale factors, and sampling at a grid's places.
#include <algorithm>
#include <cmath>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

// How the spatial axes, the last ones, are resized.
struct Target {
  Ints sizes;
  std::vector<std::optional<double>> scales;  // where the caller gave them
};

// (…, output_size, …, scale_h, scale_w): scales are optional numbers from argument `scales` on.
Target target(KernelArguments& c, size_t sizes, size_t scales) {
  Target result;
  result.sizes = c.ints(sizes);
  for (size_t i = 0; i < result.sizes.size(); ++i) result.scales.push_back(c.maybe_f(scales + i));
  return result;
}

// The overloads "vec": a list of sizes or a list of scale factors.
Target target_vec(KernelArguments& c, size_t sizes, size_t scales) {
  Target result;
  if (const auto given = c.maybe_ints(sizes)) {
    result.sizes = *given;
    result.scales.resize(given->size());
    return result;
  }
  c.check(!c.is_none(scales), "has neither sizes nor scale factors");
  const Value* x = c.tensor(0);
  const std::vector<double> factors = c.floats(scales);
  const int64_t first = c.rank(x) - std::ssize(factors);
  for (size_t i = 0; i < factors.size(); ++i) {
    const int64_t extent = known_extent(c, x, first + static_cast<int64_t>(i));
    const double size = static_cast<double>(extent) * factors[i];
    c.check(size >= 0 && size < 0x1p31, "{} times an axis of {}", factors[i], extent);
    result.sizes.push_back(static_cast<int64_t>(size));
    result.scales.emplace_back(factors[i]);
  }
  return result;
}

constexpr int64_t kMaxPlaces = 1 << 22;

// torch rounds the scale to the dtype that it computes in before it multiplies: which neighbour is
// the nearest depends on that.
template <typename T>
Ints nearest_places(const KernelArguments& c, int64_t extent, int64_t size,
                    const std::optional<double>& factor) {
  if (size > kMaxPlaces) c.unsupported("an axis of {} elements, more than {}", size, kMaxPlaces);
  const T scale = factor && *factor > 0 ? static_cast<T>(1.0 / *factor)
                                        : static_cast<T>(extent) / static_cast<T>(size);
  c.check(std::isfinite(scale), "the factor of an axis is {}", factor.value_or(0));
  const auto last = static_cast<double>(extent - 1);
  Ints places;
  for (int64_t i = 0; i < size; ++i) {
    const auto place = static_cast<double>(std::floor(static_cast<T>(i) * scale));
    places.push_back(place < last ? static_cast<int64_t>(place) : extent - 1);
  }
  return places;
}

Values nearest(KernelArguments& c, const Target& to) {
  Value* x = c.tensor(0);
  const int64_t first = c.rank(x) - std::ssize(to.sizes);
  c.check(first == 2, "{} sizes for rank {}", to.sizes.size(), c.rank(x));
  for (size_t i = 0; i < to.sizes.size(); ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), extent = known_extent(c, x, axis);
    const int64_t size = to.sizes[i];
    c.check(extent > 0 && size > 0 && size < (int64_t{1} << 31), "an axis of {} as one of {}",
            extent, size);
    if (size == extent && !to.scales[i]) continue;
    const Ints places = x->dtype() == DType::kF64
                            ? nearest_places<double>(c, extent, size, to.scales[i])
                            : nearest_places<float>(c, extent, size, to.scales[i]);
    x = c.add("gather", {x, constant_ints(c, places, {size})}, {{"axis", axis}});
  }
  return {x};
}

// With scale factors their exact values tell the places; otherwise the ratio of the extents does.
Values interpolate(KernelArguments& c, const char* mode, const Target& to, bool align_corners,
                   bool antialias) {
  Value* x = c.tensor(0);
  const int64_t rank = c.rank(x), first = rank - std::ssize(to.sizes);
  c.check(first == 2, "{} sizes for rank {}", to.sizes.size(), rank);
  const DType given = x->dtype();
  if (!is_float(given)) c.unsupported("interpolation of {}", name(given));
  x = c.cast(x, wide_dtype(given));
  NamedAttrs attrs = {{"mode", mode},
                      {"coordinate", align_corners ? "align_corners" : "half_pixel"},
                      {"axes", iota(first, rank)},
                      {"antialias", antialias},
                      {"exclude_outside", antialias}};
  bool scaled = !align_corners && !antialias;
  std::vector<double> scales;
  for (size_t i = 0; i < to.sizes.size(); ++i) {
    scaled &= to.scales[i].has_value() && *to.scales[i] > 0;
    if (scaled) scales.push_back(*to.scales[i]);
  }
  if (antialias)
    for (size_t i = 0; i < to.sizes.size(); ++i) {
      const int64_t extent = known_extent(c, x, first + static_cast<int64_t>(i));
      const double factor = static_cast<double>(to.sizes[i]) / static_cast<double>(extent);
      if (to.scales[i] && *to.scales[i] > 0 && *to.scales[i] != factor && !align_corners)
        c.unsupported("antialiasing with the scale factor {}", *to.scales[i]);
    }
  if (scaled)
    attrs.emplace_back("scales", scales);
  else
    attrs.emplace_back("sizes", to.sizes);
  return {c.add("resize", {x}, attrs)};
}

Values upsample_nearest(KernelArguments& c) { return nearest(c, target(c, 1, 2)); }
Values upsample_nearest_vec(KernelArguments& c) { return nearest(c, target_vec(c, 1, 2)); }
// (self, output_size, align_corners, scales…)
Values upsample(KernelArguments& c) {
  return interpolate(c, c.engine_op, target(c, 1, 3), c.b(2), false);
}
Values upsample_vec(KernelArguments& c) {
  return interpolate(c, c.engine_op, target_vec(c, 1, 3), c.b(2), false);
}
Values upsample_aa(KernelArguments& c) {
  return interpolate(c, c.engine_op, target(c, 1, 3), c.b(2), true);
}

// torch's cubic interpolation with a border takes each of the neighbours from the nearest element
// of the image, wherever the place itself is. A place that is two elements outside, or more, has
// the edge for all of its neighbours, so a border of four elements is enough.
Value* cubic_with_border(KernelArguments& c, Value* x, Value* grid, bool align_corners) {
  constexpr int64_t kBorder = 4;
  const Ints pads = {0, 0, kBorder, kBorder};
  std::vector<double> scale, shift, least, most;  // x, then y
  for (int64_t axis : {3, 2}) {
    const auto extent = static_cast<double>(known_extent(c, x, axis));
    scale.push_back((align_corners ? extent - 1 : extent) / 2);
    shift.push_back((extent - 1) / 2);
    least.push_back(-2);
    most.push_back(extent + 1);
  }
  const auto pair = [&](const std::vector<double>& values) {
    return c.cast(c.graph.constant(Constant::of<double>({2}, values)), grid->dtype());
  };
  Value* places = c.add("add", {c.add("mul", {grid, pair(scale)}), pair(shift)});
  places = c.add("min", {c.add("max", {places, pair(least)}), pair(most)});
  places = with_scalar(c, "add", places, kBorder);
  x = c.add("pad", {x}, {{"pads", twice(pads)}, {"mode", "edge"}});
  return c.add("grid_sample", {x, places},
               {{"mode", "cubic"}, {"padding", "border"}, {"normalized", false}});
}

Values grid_sampler(KernelArguments& c) {
  static const char* kModes[] = {"linear", "nearest", "cubic"};
  static const char* kPaddings[] = {"constant", "border", "reflection"};
  const int64_t mode = c.i(2), padding = c.i(3);
  c.check(mode >= 0 && mode < 3 && padding >= 0 && padding < 3,
          "interpolation {} and padding {} are not known", mode, padding);
  if (mode == 2 && padding == 1) return {cubic_with_border(c, c.tensor(0), c.tensor(1), c.b(4))};
  return {
      c.add("grid_sample", {c.tensor(0), c.tensor(1)},
            {{"mode", kModes[mode]}, {"padding", kPaddings[padding]}, {"align_corners", c.b(4)}})};
}

const KernelConverters kAtenResize{
    {"aten::_upsample_bilinear2d_aa.out", upsample_aa, "linear"},
    {"aten::grid_sampler_2d.out", grid_sampler},
    {"aten::upsample_bicubic2d.out", upsample, "cubic"},
    {{"aten::upsample_bilinear2d.out", "aten::upsample_linear1d.out"}, upsample, "linear"},
    {"aten::upsample_bilinear2d.vec_out", upsample_vec, "linear"},
    {{"aten::upsample_nearest1d.out", "aten::upsample_nearest2d.out",
      "aten::upsample_nearest3d.out"},
     upsample_nearest},
    {"aten::upsample_nearest2d.vec_out", upsample_nearest_vec},
};

}  // namespace

}  // namespace anymps::executorch
