// SPDX-License-Identifier: Apache-2.0
// Casts and choices that compilers do not vectorize, or only with a branch for each element: floats
// to integers, bools to anything wider, and `where` of elements of 64 bits.
#include "drivers/cpu/elementwise/cast_simd.h"

#include <limits>

#include "semantics/scalar_functions.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/elementwise/cast_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Toward zero, within the range; NaN is 0.
void floats_to_ints(const TileArgs& t) {
  using Limits = std::numeric_limits<int32_t>;
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  const size_t lanes = hn::Lanes(d);
  const auto* in = static_cast<const float*>(t.in[0]);
  auto* out = static_cast<int32_t*>(t.out);
  const V low = hn::Set(d, static_cast<float>(Limits::min())), high = hn::Neg(low);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const V x = hn::LoadU(d, in + i);
    const auto above = hn::RebindMask(di, hn::Ge(x, high));
    const V number = hn::IfThenElseZero(hn::Eq(x, x), hn::Max(x, low));
    const auto whole = hn::ConvertTo(di, hn::IfThenZeroElse(hn::Ge(x, high), number));
    hn::StoreU(hn::IfThenElse(above, hn::Set(di, Limits::max()), whole), di, out + i);
  }
  for (; i < t.n; ++i) out[i] = scalar::convert<int32_t>(in[i]);
}

// By way of 32 bits as long as these hold the numbers.
void floats_to_longs(const TileArgs& t) {
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  const hn::Repartition<int64_t, Tag> dl;
  const hn::Half<decltype(di)> half;
  const size_t lanes = hn::Lanes(d);
  const auto* in = static_cast<const float*>(t.in[0]);
  auto* out = static_cast<int64_t*>(t.out);
  const V most = hn::Set(d, 0x1p30f);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const V x = hn::LoadU(d, in + i);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(hn::Abs(x), most)))) {
      for (size_t k = i; k < i + lanes; ++k) out[k] = scalar::convert<int64_t>(in[k]);
      continue;
    }
    const auto whole = hn::ConvertTo(di, x);
    hn::StoreU(hn::PromoteTo(dl, hn::LowerHalf(half, whole)), dl, out + i);
    hn::StoreU(hn::PromoteTo(dl, hn::UpperHalf(half, whole)), dl, out + i + lanes / 2);
  }
  for (; i < t.n; ++i) out[i] = scalar::convert<int64_t>(in[i]);
}

// Bytes of bools as words of T's size: any but 0 is 1.
template <typename T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> ones_of(const uint8_t* from) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const hn::Rebind<int32_t, decltype(d)> words;
  const auto ones = hn::PromoteTo(words, hn::Min(hn::LoadU(bytes, from), hn::Set(bytes, 1)));
  if constexpr (sizeof(T) == 8)
    return hn::PromoteTo(d, ones);
  else
    return ones;
}

template <typename T>
void bools_to(const TileArgs& t) {
  using Word = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto* in = static_cast<const uint8_t*>(t.in[0]);
  auto* out = static_cast<T*>(t.out);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const auto ones = ones_of<Word>(in + i);
    if constexpr (std::is_floating_point_v<T>)
      hn::StoreU(hn::ConvertTo(d, ones), d, out + i);
    else
      hn::StoreU(ones, d, out + i);
  }
  for (; i < t.n; ++i) out[i] = static_cast<T>(in[i] != 0 ? 1 : 0);
}

void select_words(const TileArgs& t) {
  const hn::ScalableTag<int64_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto* condition = static_cast<const uint8_t*>(t.in[0]);
  const auto* a = static_cast<const int64_t*>(t.in[1]);
  const auto* b = static_cast<const int64_t*>(t.in[2]);
  auto* out = static_cast<int64_t*>(t.out);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const auto takes = hn::Ne(ones_of<int64_t>(condition + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElse(takes, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  for (; i < t.n; ++i) out[i] = condition[i] != 0 ? a[i] : b[i];
}

}  // namespace

void append_casts_here(std::vector<TileOp>& ops) {
  ops.push_back({"cast", DType::kF32, DType::kI32, 1, floats_to_ints});
  ops.push_back({"cast", DType::kF32, DType::kI64, 1, floats_to_longs});
  ops.push_back({"cast", DType::kBool, DType::kF32, 1, bools_to<float>});
  ops.push_back({"cast", DType::kBool, DType::kI32, 1, bools_to<int32_t>});
  ops.push_back({"cast", DType::kBool, DType::kI64, 1, bools_to<int64_t>});
  for (const DType dtype : {DType::kI64, DType::kU64, DType::kF64, DType::kC64})
    ops.push_back({"where", dtype, dtype, 3, select_words, nullptr, nullptr, 0.2f});
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(append_casts_here);

void append_casts(std::vector<TileOp>& ops) { HWY_DYNAMIC_DISPATCH(append_casts_here)(ops); }

}  // namespace anymps::cpu
#endif
