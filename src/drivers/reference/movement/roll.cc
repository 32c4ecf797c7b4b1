// SPDX-License-Identifier: Apache-2.0
// Elements that go round along axes, that are repeated, and windows that slide along an axis.
#include "ops/movement/roll.h"

#include "drivers/reference/lines.h"
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(roll) {
  const View &x = args.in[0], &y = args.out[0];
  if (args.attrs.ints("axes").empty()) {
    const int64_t count = x.count();
    const int64_t shift = count > 0 ? args.attrs.ints("shifts")[0] % count : 0;
    int64_t n = 0;
    return move_elements(x, y, [&](const Shape&) {
      return index_of(x.shape(), ((n++ - shift) % count + count) % count);
    });
  }
  const std::vector<int64_t> shifts = roll_shifts(args.attrs, x.shape());
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = (index[i] + x.shape()[i] - shifts[i]) % x.shape()[i];
    return source;
  });
}

REFERENCE(repeat_interleave) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "repeat_interleave");
  const int64_t given = args.has(1) ? args.in[1].count() : 1;
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < x.extent(axis); ++i) {
    const int64_t times = args.has(1)
                              ? load_int(args.in[1], (given == 1 ? 0 : i) * args.in[1].stride(0))
                              : args.attrs.i("repeats");
    require(times >= 0, "[repeat_interleave] repeats has the entry {}, must not be negative",
            times);
    require(times <= y.extent(axis) - std::ssize(sources),
            "[repeat_interleave] the repeats add up to more than {}", y.extent(axis));
    sources.insert(sources.end(), times, i);
  }
  require(std::ssize(sources) == y.extent(axis),
          "[repeat_interleave] the repeats add up to {}, must be {}", sources.size(),
          y.extent(axis));
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    source[axis] = sources[index[axis]];
    return source;
  });
}

REFERENCE(sliding_window) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "sliding_window");
  const int64_t step = args.attrs.i("step");
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    source.pop_back();
    source[axis] = index[axis] * step + index.back();
    return source;
  });
}

}  // namespace anymps
