// SPDX-License-Identifier: Apache-2.0
// Reductions of segments of an axis.
#include "semantics/segments.h"

#include "drivers/reference/dense.h"

namespace anymps {

namespace {

struct Segmented {
  // Where x is among the inputs.
  Segmented(const ReferenceArgs& args, size_t x)
      : args(args),
        mode(parse_segment_mode(args.attrs.s("mode"))),
        has_initial(args.attrs.b("has_initial")),
        offsets(!args.has(x + 1)),
        start(has_initial ? args.attrs.f("initial") : segment_start<double>(mode)),
        by(args.in[offsets ? x + 2 : x + 1]),
        x(read_dense<double>(args.in[x])) {
    const Shape& shape = args.in[x].shape();
    const size_t axis = by.shape().size() - 1;
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= shape[i];
    extent = shape[axis];
    count = by.shape()[axis] - (offsets ? 1 : 0);
  }

  // fn(k, first, length): the elements x[first + i * inner] of a segment make y[k].
  template <typename Fn>
  void for_each(const Fn& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      const auto number = [&](int64_t i) {
        Shape index = by.shape();
        int64_t rest = o;
        index.back() = i;
        for (size_t k = index.size() - 1; k-- > 0; rest /= by.shape()[k])
          index[k] = rest % by.shape()[k];
        return load_int(by, by.offset(index));
      };
      for_each_segment(args.op.name.c_str(), offsets, count, extent, number,
                       [&](int64_t s, int64_t begin, int64_t end) {
                         for (int64_t i = 0; i < inner; ++i)
                           fn((o * count + s) * inner + i, (o * extent + begin) * inner + i,
                              end - begin);
                       });
    }
  }

  const ReferenceArgs& args;
  SegmentMode mode;
  bool has_initial, offsets;
  double start;
  const View& by;
  std::vector<double> x;
  int64_t outer = 1, inner = 1, extent = 0, count = 0;
};

}  // namespace

REFERENCE(segment_reduce) {
  const Segmented all(args, 0);
  std::vector<double> y(args.out[0].count());
  all.for_each([&](int64_t k, int64_t first, int64_t length) {
    double total = all.start;
    for (int64_t i = 0; i < length; ++i)
      total = segment_join(all.mode, total, all.x[first + i * all.inner]);
    y[k] = segment_end(all.mode, total, length, all.has_initial);
  });
  write_dense(args.out[0], y);
}

REFERENCE(segment_reduce_gradient) {
  const Segmented all(args, 2);
  const std::vector<double> dy = read_dense<double>(args.in[0]), y = read_dense<double>(args.in[1]);
  std::vector<double> dx(all.x.size());
  all.for_each([&](int64_t k, int64_t first, int64_t length) {
    const auto x = [&](int64_t i) { return all.x[first + i * all.inner]; };
    int64_t equal = 0;
    for (int64_t i = 0; i < length; ++i) equal += is_segment_extremum(x(i), y[k]);
    for (int64_t i = 0; i < length; ++i) {
      double& to = dx[first + i * all.inner];
      if (all.mode == SegmentMode::kSum) {
        to = dy[k];
      } else if (all.mode == SegmentMode::kMean) {
        to = dy[k] / static_cast<double>(length);
      } else if (all.mode != SegmentMode::kProd) {
        if (is_segment_extremum(x(i), y[k])) to = dy[k] / static_cast<double>(equal);
      } else if (x(i) == 0 || std::isnan(x(i))) {
        double others = all.start;
        for (int64_t j = 0; j < length; ++j)
          if (j != i) others *= x(j);
        to = dy[k] * others;
      } else {
        to = dy[k] * y[k] / x(i);
      }
    }
  });
  write_dense(args.out[0], dx);
}

}  // namespace anymps
