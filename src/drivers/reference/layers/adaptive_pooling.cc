// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size, window by window.
#include <array>
#include <cmath>

#include "drivers/reference/dense.h"
#include "semantics/adaptive_window.h"

namespace anymps {

namespace {

// x as dense [outer, spatial, inner] and y as [outer, windows, inner]: channels first, the inner
// extent is 1; channels last, it is that of the channels.
struct AdaptivePool {
  AdaptivePool(const ReferenceArgs& args, const Shape& x)
      : grid(x, args.attrs.ints("output_size"), args.attrs.s("layout") == "channels_last") {}
  // Calls fn(y, x…) with the place of each element of y and a list of those of its window.
  template <typename Fn>
  void each(Fn fn) const {
    std::vector<size_t> spatial, window;
    for (int64_t o = 0; o < grid.outer; ++o)
      for (int64_t w = 0; w < grid.windows(); ++w)
        for (int64_t c = 0; c < grid.inner; ++c) {
          spatial.clear();
          window.clear();
          grid.each(w, [&](int64_t place) {
            spatial.push_back(static_cast<size_t>(place));
            window.push_back(static_cast<size_t>((o * grid.places() + place) * grid.inner + c));
          });
          fn(static_cast<size_t>((o * grid.windows() + w) * grid.inner + c), window, spatial);
        }
  }
  AdaptiveGrid grid;
};

using Places = std::vector<size_t>;

}  // namespace

REFERENCE(adaptive_avg_pool) {
  const AdaptivePool pool(args, args.in[0].shape());
  const std::vector<double> x = read_dense<double>(args.in[0]);
  std::vector<double> y(static_cast<size_t>(args.out[0].count()), 0.0);
  pool.each([&](size_t at, const Places& window, const Places&) {
    for (const size_t i : window) y[at] += x[i];
    y[at] /= static_cast<double>(window.size());
  });
  write_dense(args.out[0], y);
}

REFERENCE(adaptive_max_pool) {
  const AdaptivePool pool(args, args.in[0].shape());
  const std::vector<double> x = read_dense<double>(args.in[0]);
  std::vector<double> y(static_cast<size_t>(args.out[0].count()), 0.0);
  std::vector<uint64_t> places(y.size(), 0);
  pool.each([&](size_t at, const Places& window, const Places& spatial) {
    for (size_t k = 0; k < window.size(); ++k)
      if (k == 0 || x[window[k]] > y[at] || std::isnan(x[window[k]])) {
        y[at] = x[window[k]];
        places[at] = spatial[k];
      }
  });
  write_dense(args.out[0], y);
  if (args.out.size() > 1) write_dense(args.out[1], places);
}

REFERENCE(adaptive_avg_pool_gradient) {
  const AdaptivePool pool(args, args.in[1].shape());
  const std::vector<double> dy = read_dense<double>(args.in[0]);
  std::vector<double> dx(static_cast<size_t>(args.out[0].count()), 0.0);
  pool.each([&](size_t at, const Places& window, const Places&) {
    for (const size_t i : window) dx[i] += dy[at] / static_cast<double>(window.size());
  });
  write_dense(args.out[0], dx);
}

REFERENCE(adaptive_max_pool_gradient) {
  const AdaptivePool pool(args, args.in[1].shape());
  const std::vector<double> dy = read_dense<double>(args.in[0]);
  const std::vector<uint64_t> places = read_dense<uint64_t>(args.in[2]);
  std::vector<double> dx(static_cast<size_t>(args.out[0].count()), 0.0);
  const AdaptiveGrid& grid = pool.grid;
  const auto inner = static_cast<size_t>(grid.inner), spatial = static_cast<size_t>(grid.places()),
             windows = static_cast<size_t>(grid.windows());
  for (size_t at = 0; at < dy.size(); ++at) {
    require(places[at] < spatial, "[adaptive_max_pool_gradient] place {} is out of range for {}",
            static_cast<int64_t>(places[at]), spatial);
    dx[(at / inner / windows * spatial + places[at]) * inner + at % inner] += dy[at];
  }
  write_dense(args.out[0], dx);
}

}  // namespace anymps
