// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/linear/quantization_simd.h"

#include <algorithm>
#include <cmath>

#include "base/narrow.h"
#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/quantization_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using DF = Tag;
using DI = hn::ScalableTag<int32_t>;

template <typename T>
void dequantize(const QuantRun& r) {
  const DF df;
  const DI di;
  const hn::Rebind<T, DF> dt;
  const auto* in = static_cast<const T*>(r.in);
  auto* out = static_cast<float*>(r.out);
  const size_t lanes = hn::Lanes(df);
  auto scale = hn::Set(df, *r.scale), zero = hn::Set(df, *r.zero);
  size_t i = 0;
  for (; i + lanes <= r.n; i += lanes) {
    if (r.step) scale = hn::LoadU(df, r.scale + i), zero = hn::LoadU(df, r.zero + i);
    const auto x = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(dt, in + i)));
    hn::StoreU(hn::Mul(hn::Sub(x, zero), scale), df, out + i);
  }
  for (; i < r.n; ++i)
    out[i] = (static_cast<float>(in[i]) - r.zero[i * r.step]) * r.scale[i * r.step];
}

template <typename T>
void quantize(const QuantRun& r) {
  const DF df;
  const DI di;
  const hn::Rebind<T, DF> dt;
  const auto* in = static_cast<const float*>(r.in);
  auto* out = static_cast<T*>(r.out);
  const size_t lanes = hn::Lanes(df);
  const float least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  const auto low = hn::Set(df, least), high = hn::Set(df, most);
  auto scale = hn::Set(df, *r.scale), zero = hn::Set(df, *r.zero);
  size_t i = 0;
  for (; i + lanes <= r.n; i += lanes) {
    if (r.step) scale = hn::LoadU(df, r.scale + i), zero = hn::LoadU(df, r.zero + i);
    const auto y = hn::Add(hn::Round(hn::Div(hn::LoadU(df, in + i), scale)), zero);
    const auto inside = hn::Min(hn::Max(y, low), high);
    const auto whole = hn::ConvertTo(di, hn::IfThenElseZero(hn::Eq(y, y), inside));
    hn::StoreU(hn::DemoteTo(dt, whole), dt, out + i);
  }
  for (; i < r.n; ++i) {
    const float y = std::nearbyint(in[i] / r.scale[i * r.step]) + r.zero[i * r.step];
    out[i] = std::isnan(y) ? T(0) : static_cast<T>(std::clamp(y, least, most));
  }
}

void range_here(const float* x, size_t n, float& low, float& high) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  auto least = hn::Zero(df), most = hn::Zero(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(df, x + i);
    const auto number = hn::IfThenElseZero(hn::Eq(v, v), v);
    least = hn::Min(least, number);
    most = hn::Max(most, number);
  }
  low = hn::GetLane(hn::MinOfLanes(df, least));
  high = hn::GetLane(hn::MaxOfLanes(df, most));
  for (; i < n; ++i) low = std::min(low, x[i]), high = std::max(high, x[i]);
}

void dequantize_i8(const QuantRun& r) { dequantize<int8_t>(r); }
void dequantize_u8(const QuantRun& r) { dequantize<uint8_t>(r); }
void dequantize_i16(const QuantRun& r) { dequantize<int16_t>(r); }
void dequantize_u16(const QuantRun& r) { dequantize<uint16_t>(r); }
template <typename T>
void quantize_bytes(const QuantRun& r) {
  if (r.step) return quantize<T>(r);
  ByteSteps<T>(*r.scale, *r.zero).run(static_cast<const float*>(r.in), r.n, static_cast<T*>(r.out));
}

void quantize_i8(const QuantRun& r) { quantize_bytes<int8_t>(r); }
void quantize_u8(const QuantRun& r) { quantize_bytes<uint8_t>(r); }
void quantize_i16(const QuantRun& r) { quantize<int16_t>(r); }
void quantize_u16(const QuantRun& r) { quantize<uint16_t>(r); }

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

#define ANYMPS_RUN(fn) \
  HWY_EXPORT(fn);      \
  static void run_##fn(const QuantRun& run) { HWY_DYNAMIC_DISPATCH(fn)(run); }

ANYMPS_RUN(dequantize_i8);
ANYMPS_RUN(dequantize_u8);
ANYMPS_RUN(dequantize_i16);
ANYMPS_RUN(dequantize_u16);
ANYMPS_RUN(quantize_i8);
ANYMPS_RUN(quantize_u8);
ANYMPS_RUN(quantize_i16);
ANYMPS_RUN(quantize_u16);
HWY_EXPORT(range_here);

namespace {

void dequantize_i32(const QuantRun& r) {
  const auto* in = static_cast<const int32_t*>(r.in);
  auto* out = static_cast<float*>(r.out);
  for (size_t i = 0; i < r.n; ++i)
    out[i] = static_cast<float>((static_cast<double>(in[i]) - double{r.zero[i * r.step]}) *
                                double{r.scale[i * r.step]});
}

template <DType from>
void dequantize_narrow(const QuantRun& r) {
  const auto* in = static_cast<const uint8_t*>(r.in);
  auto* out = static_cast<float*>(r.out);
  const float* table = narrow_values(from).data();
  for (size_t i = 0; i < r.n; ++i)
    out[i] = (table[in[i]] - r.zero[i * r.step]) * r.scale[i * r.step];
}

template <DType to>
void quantize_to_narrow(const QuantRun& r) {
  const auto* in = static_cast<const float*>(r.in);
  auto* out = static_cast<uint8_t*>(r.out);
  for (size_t i = 0; i < r.n; ++i) {
    const double x = double{in[i] / r.scale[i * r.step]}, zero = double{r.zero[i * r.step]};
    out[i] = contains(kNarrowInt, to) ? quantize_narrow(to, std::nearbyint(x) + zero)
                                      : encode_narrow(to, x + zero);
  }
}

template <typename T>
void requantize(const QuantRun& r) {
  const auto* in = static_cast<const int32_t*>(r.in);
  auto* out = static_cast<T*>(r.out);
  const double least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  for (size_t i = 0; i < r.n; ++i) {
    const double y = std::nearbyint(static_cast<double>(in[i]) * double{r.scale[i * r.step]}) +
                     double{r.zero[i * r.step]};
    out[i] = y != y ? T(0) : static_cast<T>(y < least ? least : y > most ? most : y);
  }
}

struct QuantFns {
  DType dtype;
  QuantFn from, to;
};

template <DType dtype>
constexpr QuantFns kNarrowFns{dtype, dequantize_narrow<dtype>, quantize_to_narrow<dtype>};

constexpr QuantFns kFns[] = {
    {DType::kI8, run_dequantize_i8, run_quantize_i8},
    {DType::kU8, run_dequantize_u8, run_quantize_u8},
    {DType::kI16, run_dequantize_i16, run_quantize_i16},
    {DType::kU16, run_dequantize_u16, run_quantize_u16},
    {DType::kI32, dequantize_i32, nullptr},
    kNarrowFns<DType::kI4>,
    kNarrowFns<DType::kU4>,
    kNarrowFns<DType::kI2>,
    kNarrowFns<DType::kU2>,
    kNarrowFns<DType::kF8E4M3>,
    kNarrowFns<DType::kF8E5M2>,
    kNarrowFns<DType::kF8E4M3FNUZ>,
    kNarrowFns<DType::kF8E5M2FNUZ>,
    kNarrowFns<DType::kF4E2M1>,
};

QuantFns fns_of(DType dtype) {
  isa();
  for (const QuantFns& fns : kFns)
    if (fns.dtype == dtype) return fns;
  return {dtype, nullptr, nullptr};
}

}  // namespace

QuantFn dequantize_fn(DType from) { return fns_of(from).from; }

QuantFn quantize_fn(DType to) { return fns_of(to).to; }

QuantFn requantize_fn(DType to) {
  return to == DType::kI8 ? requantize<int8_t> : to == DType::kU8 ? requantize<uint8_t> : nullptr;
}

void range_with_zero(const float* x, size_t n, float& low, float& high) {
  isa();
  HWY_DYNAMIC_DISPATCH(range_here)(x, n, low, high);
}

}  // namespace anymps::cpu
#endif
