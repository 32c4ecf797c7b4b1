// SPDX-License-Identifier: Apache-2.0
// Reference kernels of random numbers whose distribution's parameters are tensors, of whole numbers
// and of permutations.
#include "semantics/random/sampling.h"

#include "drivers/reference/creation/philox_view.h"
#include "drivers/reference/dense.h"
#include "ops/creation/sampling.h"

namespace anymps {

namespace {

void write_next(const ReferenceArgs& args, const Philox& state, int64_t steps) {
  if (args.out.size() > 1) write_philox(args.out[1], state.advanced(static_cast<uint64_t>(steps)));
}

template <typename Fn>
void sample_each(const ReferenceArgs& args, Fn fn) {
  const View& y = args.out[0];
  const size_t parameters = args.in.size() - 1;
  const Philox state = read_philox(args.in[parameters]);
  std::vector<BroadcastOffset> offsets;
  for (size_t i = 0; i < parameters; ++i) offsets.emplace_back(args.in[i], y.shape());
  dispatch<kFloat>(y.dtype, [&]<typename T>() {
    uint64_t i = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      RandomStream stream(state, i++);
      const auto parameter = [&](size_t k) { return load_double(args.in[k], offsets[k](at)); };
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(fn(stream, parameter)));
    });
  });
  write_next(args, state, y.count());
}

}  // namespace

#define ONE(name)                                                                   \
  REFERENCE(name) {                                                                 \
    sample_each(args, [](RandomStream& s, auto p) { return draw::name(s, p(0)); }); \
  }
#define TWO(name)                                                                         \
  REFERENCE(name) {                                                                       \
    sample_each(args, [](RandomStream& s, auto p) { return draw::name(s, p(0), p(1)); }); \
  }
ANYMPS_SAMPLED_OPS(ONE, TWO)
#undef ONE
#undef TWO

REFERENCE(dirichlet) {
  const View &x = args.in[0], &y = args.out[0];
  const Philox state = read_philox(args.in[1]);
  write_next(args, state, y.count());
  if (y.count() == 0) return;
  Shape lines = y.shape();
  const int64_t length = lines.back();
  lines.back() = 1;
  dispatch<kFloat>(y.dtype, [&]<typename T>() {
    std::vector<double> line(length);
    uint64_t first = 0;
    for_each_index(lines, [&](const Shape& at) {
      Shape place = at;
      for (int64_t i = 0; i < length; ++i) {
        place.back() = i;
        line[i] = load_double(x, x.offset(place));
      }
      dirichlet_line(state, first, line);
      first += line.size();
      for (int64_t i = 0; i < length; ++i) {
        place.back() = i;
        y.at<T>(place) = static_cast<T>(static_cast<Compute<T>>(line[i]));
      }
    });
  });
}

REFERENCE(random_integers) {
  const View& y = args.out[0];
  const Philox state = read_philox(args.in[0]);
  const IntegerRange range = integer_range(args.attrs);
  dispatch<kInt>(y.dtype, [&]<typename T>() {
    uint64_t i = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      y.at<T>(at) = static_cast<T>(whole_number(state, i++, range.low, range.high));
    });
  });
  write_next(args, state, y.count());
}

REFERENCE(randperm) {
  const View& y = args.out[0];
  const Philox state = read_philox(args.in[0]);
  const std::vector<int64_t> order = permutation(state, y.count());
  dispatch<kIndex>(y.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < y.count(); ++i) y.at<T>({i}) = static_cast<T>(order[i]);
  });
  write_next(args, state, (y.count() + 1) / 2);
}

}  // namespace anymps
