// SPDX-License-Identifier: Apache-2.0
// Random numbers from a state, and states.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "drivers/reference/creation/philox_view.h"
#include "drivers/reference/dense.h"
#include "ops/creation/random.h"

namespace anymps {

namespace {

template <typename T>
T number(double value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else
    return static_cast<T>(static_cast<Compute<T>>(value));
}

// Calls fn(index, i-th uniform number of 24 bits) for each element.
template <typename Fn>
void for_each_uniform(const View& like, const Philox& state, Fn&& fn) {
  int64_t i = 0;
  for_each_index(like.shape(), [&](const Shape& at) {
    fn(at, unit(state.words(static_cast<uint64_t>(i / 4))[i % 4]));
    ++i;
  });
}

// The state after `count` uniform numbers, for who asks for it as output i.
void write_state_after(const ReferenceArgs& args, size_t i, const View& state, int64_t count) {
  if (args.out.size() > i)
    write_philox(args.out[i], read_philox(state).advanced(static_cast<uint64_t>((count + 3) / 4)));
}

// Classes without replacement: those whose exponential waiting times end first.
template <typename T>
void draw_each_once(const ReferenceArgs& args) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t batch = x.extent(0), classes = x.extent(1), samples = y.extent(1);
  require(samples <= classes, "[multinomial] {} of {} classes cannot be drawn without replacement",
          samples, classes);
  const Philox state = read_philox(args.in[1]);
  std::vector<std::pair<double, int64_t>> times(classes);
  for (int64_t n = 0; n < batch; ++n) {
    int64_t possible = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const auto i = static_cast<uint64_t>(n * classes + c);
      const double u = unit(state.words(i / 4)[i % 4]) + 0x1p-25;
      const double logarithm = load_double(x, x.offset(std::array{n, c}));
      require(!(logarithm == INFINITY) && !std::isnan(logarithm), "[multinomial] row {} holds {}",
              n, logarithm);
      possible += logarithm > -INFINITY;
      times[c] = {std::log(-std::log(u)) - logarithm, c};
    }
    require(possible >= samples, "[multinomial] row {} has {} classes that can be drawn, not {}", n,
            possible, samples);
    std::sort(times.begin(), times.end());
    for (int64_t s = 0; s < samples; ++s) y.at<T>({n, s}) = static_cast<T>(times[s].second);
  }
}

}  // namespace

REFERENCE(philox_state) {
  Philox state;
  const auto low = static_cast<uint64_t>(args.attrs.i("counter_low")),
             high = static_cast<uint64_t>(args.attrs.i("counter_high")),
             key = static_cast<uint64_t>(args.attrs.i("key"));
  state.counter = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                   static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  state.key = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  write_philox(args.out[0], state);
}

REFERENCE(random_state) {
  static const std::array<uint32_t, 2> kKey = [] {
    std::random_device device;
    return std::array<uint32_t, 2>{device(), device()};
  }();
  static std::atomic<uint64_t> runs{0};
  // Each run has the upper half of the counter to itself: streams do not meet.
  const uint64_t run = runs.fetch_add(1);
  Philox state{{0, 0, static_cast<uint32_t>(run), static_cast<uint32_t>(run >> 32)}, kKey};
  write_philox(args.out[0], state);
}

REFERENCE(random) {
  const View& y = args.out[0];
  const Philox state = read_philox(args.in[0]);
  const Distribution distribution = distribution_of(args.attrs);
  dispatch<kReal>(y.dtype, [&]<typename T>() {
    int64_t i = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      const int64_t size = distribution.per_block();
      y.at<T>(at) = number<T>(distribution.block(state, i / size)[i % size]);
      ++i;
    });
  });
  if (args.out.size() > 1)
    write_philox(args.out[1],
                 state.advanced(static_cast<uint64_t>(distribution.blocks(y.count()))));
}

REFERENCE(bernoulli) {
  const View &x = args.in[0], &y = args.out[0];
  dispatch<kReal | kBoolean>(y.dtype, [&]<typename T>() {
    for_each_uniform(y, read_philox(args.in[1]), [&](const Shape& at, double u) {
      y.at<T>(at) = number<T>(u < load_double(x, x.offset(at)) ? 1 : 0);
    });
  });
  write_state_after(args, 1, args.in[1], y.count());
}

REFERENCE(multinomial) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t classes = x.extent(1);
  const bool replacement = args.attrs.b("replacement");
  write_state_after(args, 1, args.in[1], replacement ? y.count() : x.count());
  dispatch<kIndex>(y.dtype, [&]<typename T>() {
    if (!replacement) return draw_each_once<T>(args);
    for_each_uniform(y, read_philox(args.in[1]), [&](const Shape& at, double u) {
      double largest = -INFINITY, sum = 0;
      const auto logarithm = [&](int64_t c) {
        return load_double(x, x.offset(std::array{at[0], c}));
      };
      for (int64_t c = 0; c < classes; ++c) largest = std::max(largest, logarithm(c));
      require(std::isfinite(largest), "[multinomial] row {} has no class that can be drawn", at[0]);
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(logarithm(c) - largest);
      double rest = u * sum;
      int64_t chosen = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double weight = std::exp(logarithm(c) - largest);
        if (!(weight > 0)) continue;
        chosen = c;
        rest -= weight;
        if (rest < 0) break;
      }
      y.at<T>(at) = static_cast<T>(chosen);
    });
  });
}

REFERENCE(dropout) {
  const View &x = args.in[0], &y = args.out[0];
  const double rate = args.has(2) ? load_double(args.in[2], 0) : args.attrs.f("rate");
  require(rate >= 0 && rate <= 1, "[dropout] rate is {}, must be 0 to 1", rate);
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_uniform(y, read_philox(args.in[1]), [&](const Shape& at, double u) {
      const bool kept = u >= rate;
      const double value = double{static_cast<Compute<T>>(x.at<T>(at))};
      y.at<T>(at) = number<T>(kept ? value / (1 - rate) : 0);
      if (args.out.size() > 1) args.out[1].at<bool>(at) = kept;
    });
  });
  write_state_after(args, 2, args.in[1], y.count());
}

}  // namespace anymps
