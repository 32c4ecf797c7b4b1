// SPDX-License-Identifier: Apache-2.0
// Resizing by its definition: linear mixes the corners of the cell that an element falls into.
#include "drivers/reference/dense.h"
#include "ops/resize_coordinates.h"

namespace anymps {

namespace {

std::vector<ResizeAxis> axes_of(const ReferenceArgs& args) {
  const Shape &in = args.in[0].shape(), &out = args.out[0].shape();
  std::vector<double> scales = args.attrs.floats("scales");
  if (args.has(2)) scales = read_dense<double>(args.in[2]);
  std::vector<ResizeAxis> axes(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const double exact = static_cast<double>(out[i]) / static_cast<double>(in[i]);
    axes[i] = {in[i], out[i], i < scales.size() ? scales[i] : exact,
               parse_coordinate(args.attrs.s("coordinate"))};
  }
  return axes;
}

}  // namespace

REFERENCE(resize) {
  const View &x = args.in[0], &y = args.out[0];
  if (y.count() == 0) return;
  require(x.count() > 0, "[resize] cannot make {} from an empty tensor", to_string(y.shape()));
  const std::vector<ResizeAxis> axes = axes_of(args);
  const NearestRounding rounding = parse_nearest(args.attrs.s("nearest"));
  if (args.attrs.s("mode") == "nearest") {
    dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() {
      Shape from(axes.size());
      for_each_index(y.shape(), [&](const Shape& at) {
        for (size_t i = 0; i < axes.size(); ++i) from[i] = axes[i].nearest(at[i], rounding);
        y.at<T>(at) = x.at<T>(from);
      });
    });
    return;
  }
  dispatch<kReal>(x.dtype, [&]<typename T>() {
    Shape from(axes.size());
    std::vector<ResizeAxis::Linear> cell(axes.size());
    std::vector<size_t> moving;
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i].in != axes[i].out || axes[i].scale != 1) moving.push_back(i);
    for_each_index(y.shape(), [&](const Shape& at) {
      for (size_t i = 0; i < axes.size(); ++i) from[i] = at[i];
      for (const size_t i : moving) cell[i] = axes[i].linear(at[i]);
      double sum = 0;
      for (size_t corner = 0; corner < (size_t{1} << moving.size()); ++corner) {
        double weight = 1;
        for (size_t m = 0; m < moving.size(); ++m) {
          const size_t i = moving[m];
          const bool high = corner >> m & 1;
          from[i] = high ? cell[i].high : cell[i].low;
          weight *= high ? cell[i].weight : 1 - cell[i].weight;
        }
        if (weight != 0)
          sum += weight * static_cast<double>(static_cast<Compute<T>>(x.at<T>(from)));
      }
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(sum));
    });
  });
}

}  // namespace anymps
