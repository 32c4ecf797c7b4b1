// SPDX-License-Identifier: Apache-2.0
// Boxes as offsets from prior boxes and back, and the prior boxes of a feature map: the formulas of
// single-shot detectors. A is the type that is computed in; boxes are x1, y1, x2, y2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace anymps {

// A box by its center, width and height. Of boxes in pixels the last one belongs to the box: `edge`
// is then 1, else 0.
template <typename A>
struct CenteredBox {
  A x, y, width, height;

  CenteredBox(const A* box, A edge)
      : width(box[2] - box[0] + edge), height(box[3] - box[1] + edge) {
    x = box[0] + width / 2;
    y = box[1] + height / 2;
  }
};

template <typename A>
void encode_box(const A* prior, const A* variance, const A* target, A edge, A* to) {
  const CenteredBox<A> from(prior, edge);
  const A width = target[2] - target[0] + edge, height = target[3] - target[1] + edge;
  to[0] = ((target[0] + target[2]) / 2 - from.x) / from.width / variance[0];
  to[1] = ((target[1] + target[3]) / 2 - from.y) / from.height / variance[1];
  to[2] = std::log(std::abs(width / from.width)) / variance[2];
  to[3] = std::log(std::abs(height / from.height)) / variance[3];
}

template <typename A>
void decode_box(const A* prior, const A* variance, const A* code, A edge, A* to) {
  const CenteredBox<A> from(prior, edge);
  const A x = variance[0] * code[0] * from.width + from.x,
          y = variance[1] * code[1] * from.height + from.y;
  const A width = std::exp(variance[2] * code[2]) * from.width,
          height = std::exp(variance[3] * code[3]) * from.height;
  to[0] = x - width / 2;
  to[1] = y - height / 2;
  to[2] = x + width / 2 - edge;
  to[3] = y + height / 2 - edge;
}

// The aspect ratios that boxes have: 1 first, each once, and its inverse if `flip`.
inline std::vector<double> prior_ratios(const std::vector<double>& given, bool flip) {
  std::vector<double> all = {1};
  for (const double ratio : given) {
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](double other) { return std::abs(ratio - other) < 1e-6; });
    if (known) continue;
    all.push_back(ratio);
    if (flip) all.push_back(1 / ratio);
  }
  return all;
}

struct BoxExtent {
  double width, height;
};
// The boxes of one place: for each smallest size one of each ratio, and a square between it and the
// largest size, which comes second if `max_second`, else last.
inline std::vector<BoxExtent> prior_extents(const std::vector<double>& min_sizes,
                                            const std::vector<double>& max_sizes,
                                            const std::vector<double>& ratios, bool max_second) {
  std::vector<BoxExtent> all;
  for (size_t i = 0; i < min_sizes.size(); ++i) {
    const double size = min_sizes[i];
    const auto first = static_cast<int64_t>(all.size());
    for (const double ratio : ratios)
      all.push_back({size * std::sqrt(ratio), size / std::sqrt(ratio)});
    if (max_sizes.empty()) continue;
    const double between = std::sqrt(size * max_sizes[i]);
    all.insert(max_second ? all.begin() + first + 1 : all.end(), {between, between});
  }
  return all;
}

}  // namespace anymps
