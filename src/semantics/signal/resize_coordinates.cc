// SPDX-License-Identifier: Apache-2.0
#include "semantics/signal/resize_coordinates.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "semantics/interpolation.h"

namespace anymps {

namespace {

double rounded(double place, NearestRounding rounding) {
  switch (rounding) {
    case NearestRounding::kPreferFloor:
      return std::ceil(place - 0.5);
    case NearestRounding::kPreferCeil:
      return std::floor(place + 0.5);
    case NearestRounding::kFloor:
      return std::floor(place);
    case NearestRounding::kCeil:
      return std::ceil(place);
    case NearestRounding::kToEven:
    case NearestRounding::kToOdd: {
      const double low = std::floor(place);
      if (place - low != 0.5) return std::floor(place + 0.5);
      const bool even = std::fmod(low, 2) == 0;
      return even == (rounding == NearestRounding::kToEven) ? low : low + 1;
    }
  }
  return place;
}

// The weight of an element at distance x.
double tap_weight(const ResizeFilter& filter, double x) {
  x = std::abs(x);
  if (filter.mode == ResizeMode::kLinear) return std::max(0.0, 1 - x);
  return cubic_weight(x, filter.cubic_a);
}

}  // namespace

double ResizeAxis::source(int64_t at) const {
  const auto x = static_cast<double>(at), n = static_cast<double>(in), m = static_cast<double>(out);
  // By the extents where the scale is no other: their quotient is rounded, and a place that is an
  // element's, or half way between two, must be met.
  const bool is_quotient = scale == m / n;
  const auto unscaled = [&](double place) { return is_quotient ? place * n / m : place / scale; };
  switch (coordinate) {
    case Coordinate::kHalfPixel:
      return unscaled(x + 0.5) - 0.5;
    case Coordinate::kPytorchHalfPixel:
      return length == 1 ? -0.5 : unscaled(x + 0.5) - 0.5;
    case Coordinate::kAlignCorners:
      return length == 1 ? 0 : x * (n - 1) / (length - 1);
    case Coordinate::kAsymmetric:
      return unscaled(x);
    case Coordinate::kHalfPixelSymmetric:
      return n / 2 * (1 - m / length) + unscaled(x + 0.5) - 0.5;
    case Coordinate::kTfHalfPixel:
      return unscaled(x + 0.5);
    case Coordinate::kTfCropAndResize: {
      const double span = (roi_end - roi_begin) * (n - 1);
      return roi_begin * (n - 1) + (length == 1 ? span / 2 : x * span / (length - 1));
    }
    case Coordinate::kScaleOffset:
      return unscaled(x - offset);
  }
  return x;
}

int64_t ResizeAxis::nearest(int64_t at, NearestRounding rounding) const {
  const double place = rounded(source(at), rounding);
  return static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(in - 1)));
}

std::vector<ResizeTap> ResizeAxis::taps(int64_t at, const ResizeFilter& filter) const {
  const auto last = static_cast<double>(in - 1);
  double place = source(at);
  if (coordinate == Coordinate::kTfCropAndResize && !(place >= 0 && place <= last)) return {};
  if (filter.mode == ResizeMode::kNearest) return {{nearest(at, filter.rounding), 1}};
  // Far outside only the edge is left, whatever the place; this keeps it in the range of integers.
  place = std::clamp(place, -4 - 4 * static_cast<double>(in), 4 + 5 * static_cast<double>(in));
  const double shrink = filter.antialias ? std::min(scale, 1.0) : 1;
  const double support = filter.mode == ResizeMode::kLinear ? 1 : 2;
  const auto first = static_cast<int64_t>(std::floor(-support / shrink)) + 1;
  const double low = std::floor(place), ratio = place - low;
  std::vector<ResizeTap> taps;
  double sum = 0;
  for (int64_t k = first; k < 2 - first; ++k) {
    const double weight = tap_weight(filter, (static_cast<double>(k) - ratio) * shrink);
    const int64_t index = static_cast<int64_t>(low) + k;
    if (weight == 0 || (filter.exclude_outside && (index < 0 || index >= in))) continue;
    const int64_t inside = std::clamp<int64_t>(index, 0, in - 1);
    sum += weight;
    if (!taps.empty() && taps.back().index == inside)
      taps.back().weight += weight;
    else
      taps.push_back({inside, weight});
  }
  if ((filter.antialias || filter.exclude_outside) && sum != 0)
    for (ResizeTap& tap : taps) tap.weight /= sum;
  std::erase_if(taps, [](const ResizeTap& tap) { return tap.weight == 0; });
  if (taps.empty()) return {{nearest(at, NearestRounding::kPreferFloor), 0}};
  return taps;
}

bool ResizeAxis::identity() const {
  if (in != out || scale != 1) return false;
  switch (coordinate) {
    case Coordinate::kTfHalfPixel:
      return false;
    case Coordinate::kTfCropAndResize:
      return roi_begin == 0 && roi_end == 1;
    case Coordinate::kScaleOffset:
      return offset == 0;
    default:
      return true;
  }
}

double aspect_scale(const ResizeRule& rule, const Shape& in, const std::vector<int64_t>& sizes) {
  const std::vector<size_t>& axes = rule.axes;
  const bool least = rule.aspect == ResizeAspect::kNotLarger;
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    require(in[axes[i]] > 0, "[{}] axis {} is empty", rule.op, axes[i]);
    const double ratio = static_cast<double>(sizes.at(i)) / static_cast<double>(in[axes[i]]);
    scale = i == 0 ? ratio : least ? std::min(scale, ratio) : std::max(scale, ratio);
  }
  return scale;
}

int64_t scaled_extent(int64_t extent, double scale) {
  require(scale > 0 && std::isfinite(scale), "[resize] scales has the entry {}, must be positive",
          scale);
  const float result = std::floor(static_cast<float>(extent) * static_cast<float>(scale));
  require(result < 9e18f, "[resize] extent {} times {} overflows", extent, scale);
  return static_cast<int64_t>(result);
}

std::vector<ResizeAxis> resize_axes(const ResizeRule& rule, const Shape& in, const Shape& out,
                                    const ResizeNumbers& numbers,
                                    const std::vector<int64_t>& sizes) {
  const std::string_view op = rule.op;
  const size_t rank = in.size();
  const std::vector<size_t>& named = rule.axes;
  const Coordinate coordinate = rule.coordinate;
  const auto check = [&](const std::vector<double>& values, size_t count, const char* what) {
    require(values.size() == count, "[{}] {} has {} entries, must have {}", op, what, values.size(),
            count);
    for (const double value : values)
      require(std::isfinite(value), "[{}] {} has the entry {}", op, what, value);
  };
  std::vector<ResizeAxis> axes(rank);
  for (size_t i = 0; i < rank; ++i) {
    axes[i].in = in[i];
    axes[i].out = out[i];
    axes[i].length = static_cast<double>(out[i]);
    axes[i].scale = in[i] == 0 ? 1 : static_cast<double>(out[i]) / static_cast<double>(in[i]);
  }
  const bool keep = rule.aspect != ResizeAspect::kStretch && !sizes.empty();
  const double common = keep ? aspect_scale(rule, in, sizes) : 0;
  if (!numbers.scales.empty()) check(numbers.scales, named.size(), "scales");
  if (coordinate == Coordinate::kScaleOffset) {
    check(numbers.scales, named.size(), "scales");
    check(numbers.offsets, named.size(), "offsets");
  }
  if (coordinate == Coordinate::kTfCropAndResize) check(numbers.roi, 2 * named.size(), "roi");
  for (size_t k = 0; k < named.size(); ++k) {
    ResizeAxis& axis = axes[named[k]];
    axis.coordinate = coordinate;
    if (!numbers.scales.empty() || common != 0) {
      axis.scale = numbers.scales.empty() ? common : numbers.scales[k];
      require(axis.scale > 0, "[{}] scales has the entry {}, must be positive", op, axis.scale);
      axis.length = axis.scale * static_cast<double>(axis.in);
    }
    if (coordinate == Coordinate::kScaleOffset) axis.offset = numbers.offsets[k];
    if (coordinate == Coordinate::kTfCropAndResize) {
      axis.roi_begin = numbers.roi[k];
      axis.roi_end = numbers.roi[named.size() + k];
    }
  }
  return axes;
}

}  // namespace anymps
