// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/weight_only_simd.h"

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/weight_only_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

template <typename B>
HWY_INLINE auto words_of(const B* bytes) {
  return hn::PromoteTo(hn::Rebind<int32_t, Tag>(), hn::LoadU(hn::Rebind<B, Tag>(), bytes));
}

// The numbers of one byte, or of a vector of bytes, and how many they are.
template <typename B>
struct Int8 {
  using Byte = B;
  static constexpr int kParts = 1;
  static HWY_INLINE void widen(const Byte* from, V (&to)[kParts]) {
    to[0] = hn::ConvertTo(Tag(), words_of(from));
  }
  static HWY_INLINE void widen(Byte from, float (&to)[kParts]) { to[0] = from; }
};
struct Int4 {
  using Byte = uint8_t;
  static constexpr int kParts = 2;
  static HWY_INLINE void widen(const Byte* from, V (&to)[kParts]) {
    const auto both = words_of(from);
    to[0] = hn::ConvertTo(Tag(), hn::ShiftRight<4>(both));
    to[1] = hn::ConvertTo(Tag(), hn::And(both, hn::Set(hn::DFromV<decltype(both)>(), 15)));
  }
  static HWY_INLINE void widen(Byte from, float (&to)[kParts]) {
    to[0] = static_cast<float>(from >> 4);
    to[1] = static_cast<float>(from & 15);
  }
};

template <class Code, int R>
void multiply(const PackedWeightRow& p) {
  constexpr int kParts = Code::kParts;
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* w = static_cast<const typename Code::Byte*>(p.w);
  V total[R];
  float rest[R] = {};
  for (int r = 0; r < R; ++r) total[r] = hn::Zero(d);
  for (int64_t g = 0; g < p.groups; ++g, w += p.bytes) {
    const float* x[2] = {p.x + g * p.bytes, p.lower ? p.lower + g * p.bytes : nullptr};
    const float scale = p.scales[g * p.scale_step];
    V sums[R][kParts], wide[kParts];
    for (int r = 0; r < R; ++r)
      for (int i = 0; i < kParts; ++i) sums[r][i] = hn::Zero(d);
    int64_t k = 0;
    for (; k + lanes <= p.bytes; k += lanes) {
      Code::widen(w + k, wide);
      for (int r = 0; r < R; ++r)
        for (int i = 0; i < kParts; ++i)
          sums[r][i] = hn::MulAdd(wide[i], hn::LoadU(d, x[i] + r * p.x_row + k), sums[r][i]);
    }
    for (int r = 0; r < R; ++r) {
      V sum = sums[r][0];
      if constexpr (kParts == 2) sum = hn::Add(sum, sums[r][1]);
      total[r] = hn::MulAdd(hn::Set(d, scale), sum, total[r]);
    }
    for (; k < p.bytes; ++k) {
      float one[kParts];
      Code::widen(w[k], one);
      for (int r = 0; r < R; ++r)
        for (int i = 0; i < kParts; ++i) rest[r] += scale * one[i] * x[i][r * p.x_row + k];
    }
  }
  for (int r = 0; r < R; ++r) p.sums[r] = hn::GetLane(hn::SumOfLanes(d, total[r])) + rest[r];
}

template <class Code>
HWY_INLINE void multiply_rows(const PackedWeightRow& p) {
  switch (p.rows) {
    case 1:
      return multiply<Code, 1>(p);
    case 2:
      return multiply<Code, 2>(p);
    case 3:
      return multiply<Code, 3>(p);
    default:
      return multiply<Code, 4>(p);
  }
}

void multiply_int8_here(const PackedWeightRow& p) { multiply_rows<Int8<int8_t>>(p); }
void multiply_uint8_here(const PackedWeightRow& p) { multiply_rows<Int8<uint8_t>>(p); }
void multiply_int4_here(const PackedWeightRow& p) { multiply_rows<Int4>(p); }

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(multiply_int8_here);
HWY_EXPORT(multiply_uint8_here);
HWY_EXPORT(multiply_int4_here);

void multiply_int8(const PackedWeightRow& row) { HWY_DYNAMIC_DISPATCH(multiply_int8_here)(row); }
void multiply_uint8(const PackedWeightRow& row) { HWY_DYNAMIC_DISPATCH(multiply_uint8_here)(row); }
void multiply_int4(const PackedWeightRow& row) { HWY_DYNAMIC_DISPATCH(multiply_int4_here)(row); }

}  // namespace anymps::cpu
#endif
