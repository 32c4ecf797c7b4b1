// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/signal/resize_simd.h"

#include <algorithm>
#include <cmath>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/signal/resize_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/parts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// The end of a line that does not fill a vector: by a mask, or where masked loads read whole
// vectors, by way of memory.
struct End {
  size_t count;
#if HWY_TARGET <= HWY_AVX2
  hn::Mask<Tag> mask = hn::FirstN(Tag(), count);
  HWY_INLINE V load(const float* from) const { return hn::MaskedLoad(mask, Tag(), from); }
  HWY_INLINE void store(V v, float* to) const { hn::BlendedStore(v, mask, Tag(), to); }
#else
  HWY_INLINE V load(const float* from) const { return load_part(Tag(), from, count); }
  HWY_INLINE void store(V v, float* to) const { store_part(v, Tag(), to, count); }
#endif
};

// Weighted sums of `taps` lines of n elements; kTaps is their number, or 0 for any.
template <int64_t kTaps>
HWY_INLINE void mix(const float* from, int64_t n, const End& end, const int64_t* indices,
                    const float* weights, int64_t taps, float* to) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t count = kTaps == 0 ? taps : kTaps, whole = n - static_cast<int64_t>(end.count);
  const float* lines[kTaps == 0 ? 1 : kTaps];
  V scales[kTaps == 0 ? 1 : kTaps];
  for (int64_t t = 0; t < kTaps; ++t) {
    lines[t] = from + indices[t] * n;
    scales[t] = hn::Set(d, weights[t]);
  }
  const auto sum = [&](auto&& load) HWY_ATTR {
    if constexpr (kTaps != 0) {
      V v = hn::Mul(scales[0], load(lines[0]));
      for (int64_t t = 1; t < kTaps; ++t) v = hn::MulAdd(scales[t], load(lines[t]), v);
      return v;
    }
    V v = hn::Mul(hn::Set(d, weights[0]), load(from + indices[0] * n));
    for (int64_t t = 1; t < count; ++t)
      v = hn::MulAdd(hn::Set(d, weights[t]), load(from + indices[t] * n), v);
    return v;
  };
  for (int64_t i = 0; i < whole; i += lanes)
    hn::StoreU(sum([&](const float* line) HWY_ATTR { return hn::LoadU(d, line + i); }), d, to + i);
  if (end.count > 0)
    end.store(sum([&](const float* line) HWY_ATTR { return end.load(line + whole); }), to + whole);
}

// Outputs from `begin` to `last` of the taps, each a line.
void mix_lines(const AxisTaps& taps, int64_t begin, int64_t last, const float* from, int64_t n,
               float* to) {
  const End end{static_cast<size_t>(n) % hn::Lanes(Tag())};
  for (int64_t j = begin; j < last; ++j, to += n) {
    const int64_t count = taps.count(j);
    const int64_t* indices = taps.indices.data() + taps.first[j];
    const float* weights = taps.weights.data() + taps.first[j];
    if (count == 2)
      mix<2>(from, n, end, indices, weights, 2, to);
    else if (count == 4)
      mix<4>(from, n, end, indices, weights, 4, to);
    else
      mix<0>(from, n, end, indices, weights, count, to);
  }
}

void mix_picked(const PickedRow& row, const float* from, float* to) {
  const Tag d;
  const hn::RebindToSigned<Tag> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t* places = row.places.data();
  const float* weights = row.weights.data();
  const int64_t* bases = row.bases.data();
  for (const int64_t output : row.outputs) {
    V sum = hn::Zero(d);
    for (int64_t t = 0; t < row.taps; ++t, places += lanes, weights += lanes) {
      const auto at = hn::IndicesFromVec(d, hn::LoadU(di, places));
      const V v = hn::TableLookupLanes(hn::LoadU(d, from + *bases++), at);
      sum = t == 0 ? hn::Mul(v, hn::LoadU(d, weights)) : hn::MulAdd(v, hn::LoadU(d, weights), sum);
    }
    hn::StoreU(sum, d, to + output);
  }
}

// Few elements, or such as lie far apart; kTaps is the number of each one's taps, or 0 for any.
template <int64_t kTaps>
void mix_elements(const AxisTaps& taps, int64_t inner, const float* from, float* to) {
  const int64_t* indices = taps.indices.data();
  const float* weights = taps.weights.data();
  for (int64_t j = 0; j < taps.out; ++j) {
    const int64_t count = kTaps == 0 ? taps.count(j) : kTaps;
    for (int64_t i = 0; i < inner; ++i) {
      float sum = 0;
      for (int64_t t = 0; t < count; ++t) sum += weights[t] * from[indices[t] * inner + i];
      *to++ = sum;
    }
    indices += count;
    weights += count;
  }
}

}  // namespace

void run_resize_here(const ResizePlan& plan, const float* x, int64_t begin, int64_t end,
                     float* buffer, float* y) {
  const int64_t n = plan.line_size(), rows = std::max<int64_t>(1, plan.lines.out);
  const bool pixels = plan.inner >= static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t image = begin / rows, row = begin % rows;
  y += begin * plan.line.out * plan.inner;
  for (int64_t i = begin; i < end; ++i, y += plan.line.out * plan.inner) {
    const float* from = x + image * (plan.lines.out > 0 ? plan.lines.in : 1) * n;
    if (plan.lines.out > 0) {
      mix_lines(plan.lines, row, row + 1, from, n, buffer);
      from = buffer;
    } else if (plan.picked.reads > n) {
      std::copy_n(from, n, buffer);
      from = buffer;
    }
    if (pixels)
      mix_lines(plan.line, 0, plan.line.out, from, plan.inner, y);
    else if (!plan.picked.empty())
      mix_picked(plan.picked, from, y);
    else if (plan.line.same == 2)
      mix_elements<2>(plan.line, plan.inner, from, y);
    else if (plan.line.same == 4)
      mix_elements<4>(plan.line, plan.inner, from, y);
    else
      mix_elements<0>(plan.line, plan.inner, from, y);
    if (++row == rows) {
      row = 0;
      ++image;
    }
  }
}

void copy_picked_here(const PickedRow& row, const void* from, int64_t rows, void* to) {
  const hn::RebindToSigned<Tag> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* source = static_cast<const int32_t*>(from);
  auto* target = static_cast<int32_t*>(to);
  const int32_t* places = row.places.data();
  for (size_t i = 0; i < row.outputs.size(); ++i, places += lanes) {
    const auto at = hn::IndicesFromVec(d, hn::LoadU(d, places));
    const auto v = hn::TableLookupLanes(hn::LoadU(d, source + row.bases[i]), at);
    int32_t* output = target + row.outputs[i];
    for (int64_t k = 0; k < rows; ++k, output += row.size) hn::StoreU(v, d, output);
  }
}

int64_t resize_lanes_here() { return static_cast<int64_t>(hn::Lanes(Tag())); }

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_resize_here);
HWY_EXPORT(copy_picked_here);
HWY_EXPORT(resize_lanes_here);

int64_t resize_lanes() {
  isa();
  return HWY_DYNAMIC_DISPATCH(resize_lanes_here)();
}

namespace {

// Where an output has fewer taps than others, its last tap stands for the missing ones too, in
// parts that add up to it: a weight of 0 would make NaN of infinity. `missing` is how many, `part`
// which.
float part_of(float weight, int64_t missing, int64_t part) {
  return std::ldexp(weight, -static_cast<int>(std::min(part + 1, missing)));
}

}  // namespace

PickedRow make_picked(const AxisTaps& taps, int64_t inner) {
  const int64_t lanes = resize_lanes(), in = taps.in * inner, out = taps.out * inner;
  if (out < lanes) return {};
  PickedRow row;
  row.size = out;
  row.reads = std::max(in, lanes);
  for (int64_t j = 0; j < taps.out; ++j) {
    if (taps.count(j) == 0) return {};
    row.taps = std::max(row.taps, taps.count(j));
  }
  if (row.taps > 4) return {};
  std::vector<int64_t> sources(lanes);
  for (int64_t begin = 0; begin < out; begin += lanes) {
    const int64_t start = std::min(begin, out - lanes);
    row.outputs.push_back(start);
    for (int64_t tap = 0; tap < row.taps; ++tap) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t i = start + lane, j = i / inner, last = taps.count(j) - 1;
        const int64_t t = taps.first[j] + std::min(tap, last);
        sources[lane] = taps.indices[t] * inner + i % inner;
        row.weights.push_back(tap < last
                                  ? taps.weights[t]
                                  : part_of(taps.weights[t], row.taps - 1 - last, tap - last));
      }
      const auto [low, high] = std::minmax_element(sources.begin(), sources.end());
      if (*high - *low >= lanes) return {};
      const int64_t base = std::min(*low, row.reads - lanes);
      row.bases.push_back(base);
      for (const int64_t source : sources)
        row.places.push_back(static_cast<int32_t>(source - base));
    }
  }
  return row;
}

void run_resize(const ResizePlan& plan, const float* x, int64_t begin, int64_t end, float* buffer,
                float* y) {
  HWY_DYNAMIC_DISPATCH(run_resize_here)(plan, x, begin, end, buffer, y);
}
void copy_picked(const PickedRow& row, const void* from, int64_t rows, void* to) {
  HWY_DYNAMIC_DISPATCH(copy_picked_here)(row, from, rows, to);
}

}  // namespace anymps::cpu
#endif
