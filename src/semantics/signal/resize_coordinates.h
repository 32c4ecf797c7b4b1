// SPDX-License-Identifier: Apache-2.0
// Where an element of a resized axis comes from, and with which weights: shared by the kernels of
// every driver, so that they agree on each element of a nearest resize.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/shape.h"

namespace anymps {

enum class Coordinate {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kHalfPixelSymmetric,
  kTfHalfPixel,
  kTfCropAndResize,
  kScaleOffset,
};
enum class NearestRounding { kPreferFloor, kPreferCeil, kFloor, kCeil, kToEven, kToOdd };
enum class ResizeMode { kNearest, kLinear, kCubic };

// How the neighbours of a place are weighed.
struct ResizeFilter {
  ResizeMode mode = ResizeMode::kNearest;
  NearestRounding rounding = NearestRounding::kPreferFloor;
  double cubic_a = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};

struct ResizeTap {
  int64_t index = 0;
  double weight = 0;
};

// One axis. `scale` is output over input as the caller gave it, which need not be the exact
// quotient, and `length` the extent that it gives before it is rounded to `out`.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  double scale = 1, length = 1;
  Coordinate coordinate = Coordinate::kHalfPixel;
  double offset = 0;                  // of kScaleOffset
  double roi_begin = 0, roi_end = 1;  // of kTfCropAndResize

  double source(int64_t at) const;  // the place in the input, not clamped to it
  int64_t nearest(int64_t at, NearestRounding rounding) const;
  // The elements that make up output `at`, each inside the axis and once, with weights that are not
  // 0. None: the place is outside of a crop, and the element has the extrapolation value.
  std::vector<ResizeTap> taps(int64_t at, const ResizeFilter& filter) const;
  bool identity() const;  // every output is the input in the same place
};

// What the kernels of resize and its gradient read besides x: given as inputs or as attributes.
struct ResizeNumbers {
  std::vector<double> scales, offsets, roi;
};

// What a resize is told besides: which axes the numbers are about, and how.
enum class ResizeAspect { kStretch, kNotLarger, kNotSmaller };
struct ResizeRule {
  std::string_view op;       // the op's name, for messages
  std::vector<size_t> axes;  // those that sizes, scales, offsets and roi are about
  Coordinate coordinate = Coordinate::kHalfPixel;
  ResizeAspect aspect = ResizeAspect::kStretch;
};

// Each axis of a resize from `in` to `out`. Fails, naming the op, on numbers that make no sense.
std::vector<ResizeAxis> resize_axes(const ResizeRule& rule, const Shape& in, const Shape& out,
                                    const ResizeNumbers& numbers,
                                    const std::vector<int64_t>& sizes);
// The common factor of sizes that keep the aspect ratio.
double aspect_scale(const ResizeRule& rule, const Shape& in, const std::vector<int64_t>& sizes);
// floor(extent * scale), in float as ONNX has it.
int64_t scaled_extent(int64_t extent, double scale);

}  // namespace anymps
