// SPDX-License-Identifier: Apache-2.0
// Codes of boxes and prior boxes, one at a time.
#include "semantics/box_coding.h"

#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(box_coder) {
  const bool encodes = args.attrs.s("code") == "encode", first = args.attrs.i("axis") == 1;
  const double edge = args.attrs.b("normalized") ? 0 : 1;
  const Shape& shape = args.out[0].shape();
  const std::vector<double> priors = read_dense<double>(args.in[0]),
                            boxes = read_dense<double>(args.in[1]);
  std::vector<double> variances =
      args.has(2) ? read_dense<double>(args.in[2]) : args.attrs.floats("variance");
  const bool own = args.has(2);
  if (variances.empty() && !own) variances.assign(4, 1);
  std::vector<double> y(args.out[0].count());
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j) {
      const int64_t at = (i * shape[1] + j) * 4, prior = (encodes || !first ? j : i) * 4;
      const double* variance = variances.data() + (own ? prior : 0);
      if (encodes)
        encode_box(&priors[prior], variance, &boxes[i * 4], edge, &y[at]);
      else
        decode_box(&priors[prior], variance, &boxes[at], edge, &y[at]);
    }
  write_dense(args.out[0], y);
}

REFERENCE(prior_box) {
  const Attrs& attrs = args.attrs;
  const Shape &map = args.in[0].shape(), &image = args.in[1].shape();
  const std::vector<BoxExtent> extents = prior_extents(
      attrs.floats("min_sizes"), attrs.floats("max_sizes"),
      prior_ratios(attrs.floats("aspect_ratios"), attrs.b("flip")), attrs.b("max_second"));
  const auto height = static_cast<double>(image[2]), width = static_cast<double>(image[3]);
  const auto step = [&](const char* attr, double pixels, int64_t places) {
    return attrs.f(attr) > 0 ? attrs.f(attr) : pixels / static_cast<double>(places);
  };
  const double across = step("step_width", width, map[3]),
               down = step("step_height", height, map[2]);
  const double offset = attrs.f("offset");
  std::vector<double> boxes, variances;
  for (int64_t h = 0; h < map[2]; ++h)
    for (int64_t w = 0; w < map[3]; ++w)
      for (const BoxExtent& e : extents) {
        const double x = (static_cast<double>(w) + offset) * across,
                     y = (static_cast<double>(h) + offset) * down;
        for (const double place : {(x - e.width / 2) / width, (y - e.height / 2) / height,
                                   (x + e.width / 2) / width, (y + e.height / 2) / height})
          boxes.push_back(attrs.b("clip") ? std::clamp(place, 0.0, 1.0) : place);
        const std::vector<double>& own = attrs.floats("variances");
        variances.insert(variances.end(), own.begin(), own.end());
      }
  write_dense(args.out[0], boxes);
  if (args.out.size() > 1) write_dense(args.out[1], variances);
}

}  // namespace anymps
