// SPDX-License-Identifier: Apache-2.0
// Deformable convolution by its definition.
#include "drivers/reference/dense.h"
#include "ops/layers/window.h"
#include "semantics/interpolation.h"

namespace anymps {

namespace {

// A plane read between its elements; 0 outside.
double interpolate(const double* plane, int64_t height, int64_t width, double y, double x) {
  double sum = 0;
  for (const PlaneCorner& corner : plane_corners(height, width, y, x))
    if (corner.inside) sum += corner.weight * plane[corner.row * width + corner.column];
  return sum;
}

}  // namespace

REFERENCE(deform_conv) {
  const Shape &in = args.in[0].shape(), &kernel = args.in[1].shape(), &out = args.out[0].shape();
  const std::vector<double> x = read_dense<double>(args.in[0]), w = read_dense<double>(args.in[1]),
                            offsets = read_dense<double>(args.in[2]);
  const std::vector<double> bias =
      args.has(3) ? read_dense<double>(args.in[3]) : std::vector<double>(out[1]);
  const std::vector<double> mask =
      args.has(4) ? read_dense<double>(args.in[4]) : std::vector<double>();
  const int64_t groups = args.attrs.i("groups"), offset_groups = args.attrs.i("offset_groups");
  const Window window = resolve_window(args.attrs, {in[2], in[3]}, {kernel[2], kernel[3]});
  const int64_t taps = kernel[2] * kernel[3], places = out[2] * out[3];
  const int64_t per_group = kernel[1], per_offset = in[1] / offset_groups;
  std::vector<double> y;
  for_each_index(out, [&](const Shape& at) {
    const int64_t n = at[0], o = at[1], place = at[2] * out[3] + at[3];
    double sum = bias[o];
    for (int64_t c = 0; c < per_group; ++c) {
      const int64_t channel = o / (out[1] / groups) * per_group + c;
      const int64_t set = n * offset_groups + channel / per_offset;
      const double* plane = x.data() + (n * in[1] + channel) * in[2] * in[3];
      for (int64_t k = 0; k < taps; ++k) {
        const auto shift = [&](int64_t axis) {
          return offsets[((set * taps + k) * 2 + axis) * places + place];
        };
        const auto from = [&](size_t axis, int64_t tap) {
          return static_cast<double>(at[2 + axis] * window.strides[axis] +
                                     tap * window.dilations[axis] - window.pads_begin[axis]);
        };
        const double value = interpolate(plane, in[2], in[3], from(0, k / kernel[3]) + shift(0),
                                         from(1, k % kernel[3]) + shift(1));
        sum += value * w[(o * per_group + c) * taps + k] *
               (mask.empty() ? 1 : mask[(set * taps + k) * places + place]);
      }
    }
    y.push_back(sum);
  });
  write_dense(args.out[0], y);
}

}  // namespace anymps
