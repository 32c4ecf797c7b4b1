// SPDX-License-Identifier: Apache-2.0
// Reference kernels of searches, sets, counts and histograms: they look at one element after the
// other.
#include <cmath>

#include "drivers/reference/dense.h"
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"
#include "semantics/histogram.h"

namespace anymps {

REFERENCE(search_sorted) {
  const View &sorted = args.in[0], &values = args.in[1], &y = args.out[0];
  const int64_t rank = sorted.rank(), length = sorted.extent(rank - 1);
  const bool right = args.attrs.b("right");
  dispatch<kReal>(sorted.dtype, [&]<typename T>() {
    for_each_index(values.shape(), [&](const Shape& index) {
      Shape row(rank, 0);
      for (size_t i = 0; rank > 1 && i + 1 < row.size(); ++i) row[i] = index[i];
      const auto at = [&](int64_t i) {
        Shape place = row;
        place.back() = i;
        if (args.has(2))
          place.back() =
              checked_index(args, load_int(args.in[2], args.in[2].offset(place)), rank - 1, length);
        return widen(sorted.at<T>(place));
      };
      // The first element that is not below, or is above. Of NaN there is none.
      const Wide<T> value = widen(values.at<T>(index));
      int64_t place = 0;
      while (place < length && !(right ? at(place) > value : at(place) >= value)) ++place;
      y.at<int64_t>(index) = place;
    });
  });
}

REFERENCE(is_in) {
  const View &x = args.in[0], &members = args.in[1];
  const bool invert = args.attrs.b("invert");
  dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() {
    for_each_index(x.shape(), [&](const Shape& index) {
      bool found = false;
      for_each_index(members.shape(), [&](const Shape& member) {
        found |= load<T>(x, x.offset(index)) == load<T>(members, members.offset(member));
      });
      args.out[0].at<bool>(index) = found != invert;
    });
  });
}

REFERENCE(bincount) {
  const View &x = args.in[0], &y = args.out[0];
  std::vector<double> sums(y.count(), 0.0);
  for (int64_t i = 0; i < x.extent(0); ++i) {
    const int64_t value = load_int(x, i * x.stride(0));
    require(value >= 0 && value < y.extent(0), "[bincount] element {} is outside of [0, {})", value,
            y.extent(0));
    sums[value] += args.has(1) ? load_double(args.in[1], i * args.in[1].stride(0)) : 1;
  }
  if (args.has(1)) return write_dense(y, sums);
  for (int64_t i = 0; i < y.extent(0); ++i) y.at<int64_t>({i}) = static_cast<int64_t>(sums[i]);
}

REFERENCE(histogram) {
  const std::vector<double> x = read_dense<double>(args.in[0]);
  double low = args.attrs.f("low"), high = args.attrs.f("high");
  if (low == high && !args.has(1) && !x.empty()) {
    low = *std::min_element(x.begin(), x.end());
    high = *std::max_element(x.begin(), x.end());
    for (const double value : x)
      require(std::isfinite(value), "[histogram] the range of the elements is not finite");
  }
  const Bins bins = args.has(1) ? Bins(read_dense<double>(args.in[1]))
                                : Bins(args.attrs.i("bins"), low, high, args.attrs.f("margin"));
  std::vector<double> sums(bins.count(), 0.0);
  const std::vector<double> weights =
      args.has(2) ? read_dense<double>(args.in[2]) : std::vector<double>(x.size(), 1.0);
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t bin = bins.find(x[i]);
    if (bin < 0) continue;
    sums[bin] += weights[i];
    total += weights[i];
  }
  if (args.attrs.b("density"))
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] /= total * (bins.edges()[i + 1] - bins.edges()[i]);
  write_dense(args.out[0], sums);
  write_dense(args.out[1], bins.edges());
}

}  // namespace anymps
