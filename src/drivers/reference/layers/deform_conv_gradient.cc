// SPDX-License-Identifier: Apache-2.0
// The gradients of deformable convolution by their definition.
#include "drivers/reference/dense.h"
#include "ops/layers/window.h"
#include "semantics/interpolation.h"

namespace anymps {

REFERENCE(deform_conv_gradient) {
  const Shape &out = args.in[0].shape(), &in = args.in[1].shape(), &kernel = args.in[2].shape();
  const std::vector<double> dy = read_dense<double>(args.in[0]), x = read_dense<double>(args.in[1]),
                            w = read_dense<double>(args.in[2]),
                            offsets = read_dense<double>(args.in[3]);
  const int64_t groups = args.attrs.i("groups"), offset_groups = args.attrs.i("offset_groups");
  const Window window = resolve_window(args.attrs, {in[2], in[3]}, {kernel[2], kernel[3]});
  const int64_t taps = kernel[2] * kernel[3], places = out[2] * out[3];
  const int64_t per_group = kernel[1], per_offset = in[1] / offset_groups;
  const std::vector<double> mask =
      args.has(4) ? read_dense<double>(args.in[4]) : std::vector<double>(offsets.size() / 2, 1.0);
  std::vector<double> dx(x.size()), dw(w.size()), doffsets(offsets.size()), dmask(mask.size());
  size_t next = 0;
  for_each_index(out, [&](const Shape& at) {
    const int64_t n = at[0], o = at[1], place = at[2] * out[3] + at[3];
    const double g = dy[next++];
    for (int64_t c = 0; c < per_group; ++c) {
      const int64_t channel = o / (out[1] / groups) * per_group + c;
      const int64_t set = n * offset_groups + channel / per_offset;
      const int64_t plane = (n * in[1] + channel) * in[2] * in[3];
      for (int64_t k = 0; k < taps; ++k) {
        const auto shift = [&](int64_t axis) {
          return ((set * taps + k) * 2 + axis) * places + place;
        };
        const auto from = [&](size_t axis, int64_t tap) {
          return static_cast<double>(at[2 + axis] * window.strides[axis] +
                                     tap * window.dilations[axis] - window.pads_begin[axis]);
        };
        const size_t weight = (o * per_group + c) * taps + k;
        const size_t scale = (set * taps + k) * places + place;
        double value = 0, row_slope = 0, column_slope = 0;
        for (const PlaneCorner& corner :
             plane_corners(in[2], in[3], from(0, k / kernel[3]) + offsets[shift(0)],
                           from(1, k % kernel[3]) + offsets[shift(1)])) {
          if (!corner.inside) continue;
          const size_t element = plane + corner.row * in[3] + corner.column;
          value += corner.weight * x[element];
          row_slope += corner.row_slope * x[element];
          column_slope += corner.column_slope * x[element];
          dx[element] += g * w[weight] * mask[scale] * corner.weight;
        }
        dw[weight] += g * mask[scale] * value;
        dmask[scale] += g * w[weight] * value;
        doffsets[shift(0)] += g * w[weight] * mask[scale] * row_slope;
        doffsets[shift(1)] += g * w[weight] * mask[scale] * column_slope;
      }
    }
  });
  write_dense(args.out[0], dx);
  write_dense(args.out[1], dw);
  write_dense(args.out[2], doffsets);
  write_dense(args.out[3], dmask);
}

}  // namespace anymps
