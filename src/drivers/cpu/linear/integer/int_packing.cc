// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. How operands of products of bytes are packed, and what
// their bytes sum up to.
#include <cstring>

#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/int_gemm.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/integer/int_packing.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

constexpr auto kWords = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<int32_t>()));

void take_every_second_here(const uint8_t* from, int64_t count, uint8_t* to) {
  const hn::CappedTag<uint8_t, 16> d;
  int64_t i = 0;
  for (; i + 16 < count; i += 16) {  // of the last one only the first byte may be read
    hn::Vec<decltype(d)> even, odd;
    hn::LoadInterleaved2(d, from + 2 * i, even, odd);
    hn::StoreU(even, d, to + i);
  }
  for (; i < count; ++i) to[i] = from[2 * i];
}

// `lanes` elements from column j of row k on; zeros where there are none.
template <typename D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> part_of_row(D d, const IntRows& rows, int64_t width, int64_t k, int64_t j) {
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(D()));
  if (k >= rows.depth) return hn::Zero(d);
  const auto* from = reinterpret_cast<const T*>(rows.from + rows.offsets[k]) + j;
  if (j + lanes <= (rows.slack ? width : rows.columns)) return hn::LoadU(d, from);
  T part[lanes] = {};
  if (j < rows.columns)
    std::memcpy(part, from, static_cast<size_t>(std::min(lanes, rows.columns - j)));
  return hn::LoadU(d, part);
}

void pack_quads(const IntRows& rows, int64_t width, uint8_t* to) {
  const hn::CappedTag<uint8_t, std::min<size_t>(16, kWords)> d;
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(decltype(d)()));
  const auto flip = hn::Set(d, rows.flip ? 128 : 0);
  for (int64_t k = 0; k < rows.depth; k += 4, to += 4 * width)
    for (int64_t j = 0; j < width; j += lanes) {
      const auto row = [&](int64_t i) HWY_ATTR {
        return hn::Xor(part_of_row(d, rows, width, k + i, j), flip);
      };
      hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, to + 4 * j);
    }
}

template <typename T>
void pack_pairs(const IntRows& rows, int64_t width, int16_t* to) {
  const hn::CappedTag<int16_t, std::min<size_t>(8, kWords)> d;
  const hn::Rebind<T, decltype(d)> d8;
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(decltype(d)()));
  for (int64_t k = 0; k < rows.depth; k += 2, to += 2 * width)
    for (int64_t j = 0; j < width; j += lanes) {
      const auto row = [&](int64_t i) HWY_ATTR {
        return hn::PromoteTo(d, part_of_row(d8, rows, width, k + i, j));
      };
      hn::StoreInterleaved2(row(0), row(1), d, to + 2 * j);
    }
}

void pack_panel_here(const IntPacking& packing, const IntRows& rows, void* to) {
  const int64_t width = packing.width(rows.columns);
  if (packing.bytes)
    pack_quads(rows, width, static_cast<uint8_t*>(to));
  else if (rows.dtype == DType::kI8)
    pack_pairs<int8_t>(rows, width, static_cast<int16_t*>(to));
  else
    pack_pairs<uint8_t>(rows, width, static_cast<int16_t*>(to));
}

// Bytes, those of i8 moved up by 128, and how many there were.
int32_t sum_here(DType dtype, const void* data, int64_t count) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto* from = static_cast<const uint8_t*>(data);
  const uint8_t flip = dtype == DType::kI8 ? 128 : 0;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d64);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(d, from + i), hn::Set(d, flip))));
  auto sum = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
  for (; i < count; ++i) sum += from[i] ^ flip;
  return static_cast<int32_t>(sum - count * flip);
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(pack_panel_here);
HWY_EXPORT(sum_here);
HWY_EXPORT(take_every_second_here);

void pack_int_panel(const IntPacking& packing, const IntRows& rows, void* to) {
  HWY_DYNAMIC_DISPATCH(pack_panel_here)(packing, rows, to);
}

void pack_int_row(const IntPacking& packing, DType dtype, bool flip, const void* from,
                  int64_t depth, int64_t step, void* to) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  const int64_t padded = packing.words(depth) * packing.per_word();
  if (packing.bytes) {
    auto* y = static_cast<uint8_t*>(to);
    const uint8_t bit = flip ? 128 : 0;
    if (step == 1)
      for (int64_t k = 0; k < depth; ++k) y[k] = bytes[k] ^ bit;
    else
      for (int64_t k = 0; k < depth; ++k) y[k] = bytes[k * step] ^ bit;
    std::fill(y + depth, y + padded, uint8_t{0});
    return;
  }
  auto* y = static_cast<int16_t*>(to);
  for (int64_t k = 0; k < depth; ++k) {
    const uint8_t byte = bytes[k * step];
    y[k] = dtype == DType::kI8 ? int16_t{static_cast<int8_t>(byte)} : int16_t{byte};
  }
  std::fill(y + depth, y + padded, int16_t{0});
}

void take_every(const uint8_t* from, int64_t step, int64_t count, uint8_t* to) {
  if (step == 1)
    std::memcpy(to, from, static_cast<size_t>(count));
  else if (step == 2)
    HWY_DYNAMIC_DISPATCH(take_every_second_here)(from, count, to);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

int32_t sum_bytes(DType dtype, const void* from, int64_t count, int64_t step) {
  if (step == 1) return HWY_DYNAMIC_DISPATCH(sum_here)(dtype, from, count);
  const auto* bytes = static_cast<const uint8_t*>(from);
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += dtype == DType::kI8 ? static_cast<int8_t>(bytes[i * step]) : bytes[i * step];
  return static_cast<int32_t>(sum);
}

}  // namespace anymps::cpu
#endif
