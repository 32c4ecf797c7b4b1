// SPDX-License-Identifier: Apache-2.0
// Local response normalization: for each element, the squares of its neighbouring channels. Vectors
// go along the channels where these lie side by side, else along what lies inside of them. Sums are
// made afresh for each element: a sum that is slid along keeps NaN and rounding errors.
#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/threads.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/lrn.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/parts-inl.h"

#ifndef ANYMPS_LRN_RULE
#define ANYMPS_LRN_RULE
namespace anymps::cpu::local_response {

// How x is divided: by s^beta, s = bias + alpha * sum. Most powers are products of roots, which are
// wanted for sums that cannot be negative alone.
enum class Power { kOne, kRoot, kThreeQuarters, kOther };
struct Rule {
  int64_t before = 0, after = 0;  // neighbours, none of them further away than all channels
  float alpha = 0, beta = 0, bias = 0;
  Power power = Power::kOther;
};

constexpr int64_t kBlock = 256;       // elements that are worked on together
constexpr int64_t kMostWindow = 256;  // of channels that lie side by side
constexpr int64_t kSquares = 2048;    // at least a block, a window and a vector

}  // namespace anymps::cpu::local_response
#endif

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using local_response::kBlock;
using local_response::kMostWindow;
using local_response::kSquares;
using local_response::Power;
using local_response::Rule;

template <Power kPower>
HWY_INLINE V response(const Rule& rule, V x, V sum) {
  const Tag d;
  const V s = hn::MulAdd(hn::Set(d, rule.alpha), sum, hn::Set(d, rule.bias));
  if constexpr (kPower == Power::kOne) return hn::Div(x, s);
  if constexpr (kPower == Power::kRoot) return hn::Div(x, hn::Sqrt(s));
  if constexpr (kPower == Power::kThreeQuarters) {
    const V root = hn::Sqrt(s);
    return hn::Div(x, hn::Mul(root, hn::Sqrt(root)));
  }
  return hn::Div(x, math::pow(d, s, hn::Set(d, rule.beta)));
}

// Channels from `begin` to `end` of those that lie side by side: their squares and those of their
// neighbours, with zeros outside and a vector of zeros behind.
HWY_INLINE void fill_squares(const Rule& rule, const float* x, int64_t channels, int64_t begin,
                             int64_t end, float* to) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t start = begin - rule.before, low = std::max<int64_t>(0, start),
                high = std::min(channels, end + rule.after);
  to = std::fill_n(to, low - start, 0.0f);
  int64_t c = low;
  for (; c + lanes <= high; c += lanes, to += lanes) {
    const V v = hn::LoadU(d, x + c);
    hn::StoreU(hn::Mul(v, v), d, to);
  }
  for (; c < high; ++c) *to++ = x[c] * x[c];
  std::fill_n(to, end + rule.after - high + lanes, 0.0f);
}

template <Power kPower>
HWY_INLINE void sum_squares(const Rule& rule, const float* squares, const float* x, int64_t count,
                            float* y) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t window = rule.before + rule.after + 1;
  for (int64_t c = 0; c < count; c += lanes, squares += lanes) {
    V sum = hn::LoadU(d, squares);
    for (int64_t k = 1; k < window; ++k) sum = hn::Add(sum, hn::LoadU(d, squares + k));
    if (c + lanes <= count) {
      hn::StoreU(response<kPower>(rule, hn::LoadU(d, x + c), sum), d, y + c);
    } else {
      const auto rest = static_cast<size_t>(count - c);
      store_part(response<kPower>(rule, load_part(d, x + c, rest), sum), d, y + c, rest);
    }
  }
}

// Channels that lie side by side. Squares are written for several rows before the first are read:
// a vector that lies across two that were just written has to wait for them.
template <Power kPower>
void along_channels(const Rule& rule, const float* x, int64_t rows, int64_t channels, float* y) {
  const auto lanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
  alignas(64) float squares[kSquares];
  static_assert(kSquares >= kBlock + kMostWindow + static_cast<int64_t>(hn::MaxLanes(Tag())));
  if (channels > kBlock) {
    for (int64_t row = 0; row < rows; ++row, x += channels, y += channels)
      for (int64_t begin = 0; begin < channels; begin += kBlock) {
        const int64_t end = std::min(channels, begin + kBlock);
        fill_squares(rule, x, channels, begin, end, squares);
        sum_squares<kPower>(rule, squares, x + begin, end - begin, y + begin);
      }
    return;
  }
  const int64_t size = rule.before + channels + rule.after + lanes;
  while (rows > 0) {
    const int64_t count = std::min(rows, kSquares / size);
    for (int64_t i = 0; i < count; ++i)
      fill_squares(rule, x + i * channels, channels, 0, channels, squares + i * size);
    for (int64_t i = 0; i < count; ++i, x += channels, y += channels)
      sum_squares<kPower>(rule, squares + i * size, x, channels, y);
    rows -= count;
  }
}

// n elements of each channel, which are `inner` apart.
template <Power kPower>
void across_channels(const Rule& rule, const float* x, int64_t channels, int64_t inner, size_t n,
                     float* y) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), whole = n / lanes * lanes;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = std::max<int64_t>(0, c - rule.before),
                  last = std::min(channels - 1, c + rule.after);
    const float* line = x + c * inner;
    float* to = y + c * inner;
    for (size_t i = 0; i < whole; i += lanes) {
      V sum = hn::Zero(d);
      for (int64_t k = first; k <= last; ++k) {
        const V v = hn::LoadU(d, x + k * inner + i);
        sum = hn::MulAdd(v, v, sum);
      }
      hn::StoreU(response<kPower>(rule, hn::LoadU(d, line + i), sum), d, to + i);
    }
    if (whole < n) {
      V sum = hn::Zero(d);
      for (int64_t k = first; k <= last; ++k) {
        const V v = load_part(d, x + k * inner + whole, n - whole);
        sum = hn::MulAdd(v, v, sum);
      }
      store_part(response<kPower>(rule, load_part(d, line + whole, n - whole), sum), d, to + whole,
                 n - whole);
    }
  }
}

template <typename Fn>
void with_power(Power power, Fn&& fn) {
  switch (power) {
    case Power::kOne:
      return fn.template operator()<Power::kOne>();
    case Power::kRoot:
      return fn.template operator()<Power::kRoot>();
    case Power::kThreeQuarters:
      return fn.template operator()<Power::kThreeQuarters>();
    case Power::kOther:
      return fn.template operator()<Power::kOther>();
  }
}

}  // namespace

void lrn_rows(const Rule& rule, const float* x, int64_t rows, int64_t channels, float* y) {
  with_power(rule.power,
             [&]<Power kPower>() { along_channels<kPower>(rule, x, rows, channels, y); });
}

void lrn_block(const Rule& rule, const float* x, int64_t channels, int64_t inner, int64_t n,
               float* y) {
  with_power(rule.power, [&]<Power kPower>() {
    across_channels<kPower>(rule, x, channels, inner, static_cast<size_t>(n), y);
  });
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

namespace {

using local_response::kBlock;
using local_response::kMostWindow;
using local_response::Power;
using local_response::Rule;

HWY_EXPORT(lrn_rows);
HWY_EXPORT(lrn_block);

constexpr double kLrnNs = 0.4;  // of one element

Rule rule_of(const Attrs& attrs, int64_t channels) {
  const int64_t size = attrs.i("size"), before = (size - 1) / 2;
  Rule rule;
  rule.before = std::clamp<int64_t>(before, 0, channels);
  rule.after = std::clamp<int64_t>(size - 1 - before, 0, channels);
  rule.alpha = static_cast<float>(attrs.f("alpha") / static_cast<double>(size));
  rule.beta = static_cast<float>(attrs.f("beta"));
  rule.bias = static_cast<float>(attrs.f("bias"));
  const bool positive = rule.alpha >= 0 && rule.bias > 0;
  if (rule.beta == 1) rule.power = Power::kOne;
  if (positive && rule.beta == 0.5f) rule.power = Power::kRoot;
  if (positive && rule.beta == 0.75f) rule.power = Power::kThreeQuarters;
  return rule;
}

CPU_KERNEL(lrn, "simd") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (is_half(x.dtype)) return widened(request, make_lrn, why);
  if (x.dtype != DType::kF32) return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "not contiguous");
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "lrn");
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= x.shape[i];
  for (size_t i = axis + 1; i < x.shape.size(); ++i) inner *= x.shape[i];
  const int64_t channels = x.shape[axis];
  const Rule rule = rule_of(request.attrs, channels);
  isa();
  if (inner == 1 && rule.before + rule.after < kMostWindow)
    return make_kernel([=](const KernelArgs& args) {
      const double ns = kLrnNs * static_cast<double>(channels);
      parallel_for(0, outer, ns, [&](int64_t begin, int64_t end) {
        HWY_DYNAMIC_DISPATCH(lrn_rows)
        (rule, static_cast<const float*>(args.inputs[0]) + begin * channels, end - begin, channels,
         static_cast<float*>(args.outputs[0]) + begin * channels);
      });
    });
  const int64_t blocks = (inner + kBlock - 1) / kBlock;
  return make_kernel([=](const KernelArgs& args) {
    const double ns = kLrnNs * static_cast<double>(channels * std::min(inner, kBlock));
    parallel_for(0, outer * blocks, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kBlock;
        const int64_t offset = i / blocks * channels * inner + first;
        HWY_DYNAMIC_DISPATCH(lrn_block)
        (rule, static_cast<const float*>(args.inputs[0]) + offset, channels, inner,
         std::min(kBlock, inner - first), static_cast<float*>(args.outputs[0]) + offset);
      }
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
#endif
