// SPDX-License-Identifier: Apache-2.0
// Reference kernels that take one element of each line: its place is found by a stable sort or by
// one look at each element.
#include <algorithm>
#include <numeric>

#include "drivers/reference/lines.h"

namespace anymps {

namespace {

// `choose(line)` gives the place of the element to take.
template <DTypeSet allowed, typename Choose>
void pick_lines(const ReferenceArgs& args, Choose choose) {
  const View &x = args.in[0], &values = args.out[0], &indices = args.out[1];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), args.op.name.c_str());
  const bool keep = args.attrs.b("keep_dims");
  dispatch<allowed>(x.dtype, [&]<typename T>() {
    for_each_line(x.shape(), axis, [&](const Shape& index) {
      const std::vector<Wide<T>> line = read_line<T>(x, index, axis);
      const size_t at = choose(line);
      Shape to;
      for (int64_t i = 0; i < x.rank(); ++i)
        if (i != axis || keep) to.push_back(index[i]);
      values.at<T>(to) = narrow<T>(line[at]);
      indices.at<int64_t>(to) = static_cast<int64_t>(at);
    });
  });
}

// Places in ascending order, NaN last.
template <typename W>
std::vector<size_t> ascending(const std::vector<W>& line) {
  std::vector<size_t> order(line.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (scalar::is_nan_value(line[b])) return !scalar::is_nan_value(line[a]);
    return line[a] < line[b];
  });
  return order;
}

template <typename Beats>
void pick_extremum(const ReferenceArgs& args, Beats beats) {
  pick_lines<kReal | kBoolean>(args, [&](const auto& line) {
    size_t best = 0;
    for (size_t i = 1; i < line.size(); ++i) {
      if (scalar::is_nan_value(line[best])) break;
      if (scalar::is_nan_value(line[i]) || beats(line[i], line[best])) best = i;
    }
    return best;
  });
}

}  // namespace

REFERENCE(max_with_indices) {
  pick_extremum(args, [](auto a, auto b) { return a > b; });
}
REFERENCE(min_with_indices) {
  pick_extremum(args, [](auto a, auto b) { return a < b; });
}

REFERENCE(median) {
  const bool skip = args.attrs.b("skip_nan");
  pick_lines<kReal | kBoolean>(args, [&](const auto& line) {
    const auto nan = [](auto value) { return scalar::is_nan_value(value); };
    const auto first = std::find_if(line.begin(), line.end(), nan);
    if (!skip && first != line.end()) return static_cast<size_t>(first - line.begin());
    const size_t nans = std::count_if(line.begin(), line.end(), nan);
    const size_t numbers = line.size() - nans;
    return ascending(line)[numbers == 0 ? 0 : (numbers - 1) / 2];
  });
}

REFERENCE(kth_value) {
  const size_t k = args.attrs.i("k");
  pick_lines<kReal | kBoolean>(args, [&](const auto& line) {
    require(k >= 1 && k <= line.size(), "[kth_value] k is {}, the axis has the extent {}", k,
            line.size());
    return ascending(line)[k - 1];
  });
}

REFERENCE(mode) {
  pick_lines<kReal | kBoolean>(args, [&](const auto& line) {
    const std::vector<size_t> order = ascending(line);
    size_t best = order[0], most = 0, run = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool again = i > 0 && line[order[i]] == line[order[i - 1]];
      run = again ? run + 1 : 1;
      if (run > most) best = order[i], most = run;
    }
    return best;
  });
}

}  // namespace anymps
