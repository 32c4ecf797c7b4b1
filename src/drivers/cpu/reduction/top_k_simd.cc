// SPDX-License-Identifier: Apache-2.0
// A line is cut into groups, as lanes see it. The k-th lowest of the groups' lowest keys is a
// bound: k elements or more are not above it, and few more. They are put in order by counting for
// each how many are lower.
#include "drivers/cpu/reduction/top_k_simd.h"

#include <algorithm>

#include "drivers/cpu/isa.h"
#include "semantics/sort_items.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/reduction/top_k_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using Keys = hn::ScalableTag<uint32_t>;
using Words = hn::ScalableTag<uint64_t>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Keys()));
constexpr int64_t kGroups = 32, kSets = kGroups / kLanes;
constexpr int64_t kMost = 64;  // put in order by counting

// key_of() of vectors.
HWY_INLINE hn::Vec<Keys> keys_of(V x, uint32_t turn) {
  const Keys d;
  const Tag df;
  const auto sign = hn::Set(d, 0x80000000u), all = hn::Set(d, ~0u);
  const auto bits = hn::BitCast(d, hn::IfThenZeroElse(hn::Eq(x, hn::Zero(df)), x));
  const auto negative = hn::Ne(hn::And(bits, sign), hn::Zero(d));
  const auto key = hn::IfThenElse(negative, hn::Xor(bits, all), hn::Or(bits, sign));
  const auto nan = hn::RebindMask(d, hn::IsNaN(x));
  return hn::Xor(hn::IfThenElse(nan, all, key), hn::Set(d, turn));
}

// Keys of n elements, and the highest behind them up to whole groups. Returns how many.
int64_t write_keys(const float* x, int64_t n, uint32_t turn, uint32_t* keys) {
  const Keys d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::Store(keys_of(hn::LoadU(Tag(), x + i), turn), d, keys + i);
  for (; i < n; ++i) keys[i] = key_of(x[i]) ^ turn;
  const int64_t whole = (n + kGroups - 1) / kGroups * kGroups;
  std::fill(keys + n, keys + whole, ~0u);
  return whole;
}

// The k-th lowest of the lowest of each group.
uint32_t bound_of(const uint32_t* keys, int64_t count, int64_t k) {
  const Keys d;
  hn::Vec<Keys> lowest[kSets];
  for (auto& set : lowest) set = hn::Set(d, ~0u);
  for (int64_t i = 0; i < count; i += kGroups)
    for (int64_t s = 0; s < kSets; ++s)
      lowest[s] = hn::Min(lowest[s], hn::Load(d, keys + i + s * kLanes));
  HWY_ALIGN uint32_t all[kGroups];
  for (int64_t s = 0; s < kSets; ++s) hn::Store(lowest[s], d, all + s * kLanes);
  uint32_t bound = ~0u;
  for (const uint32_t key : all) {
    size_t below = kGroups;  // or equal
    for (const auto& set : lowest) below -= hn::CountTrue(d, hn::Gt(set, hn::Set(d, key)));
    bound = static_cast<int64_t>(below) >= k ? std::min(bound, key) : bound;
  }
  return bound;
}

// Words of the keys up to `bound`, in the order of their places; more than kMost: there are more.
int64_t collect(const uint32_t* keys, int64_t count, uint32_t bound, uint64_t* words) {
  const Keys d;
  int64_t found = 0;
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto above = hn::Gt(hn::Load(d, keys + i), hn::Set(d, bound));
    if (hn::AllTrue(d, above)) continue;
    for (int64_t lane = i; lane < i + kLanes; ++lane) {
      if (found > kMost) return found;
      words[found] = SortItem<uint32_t>::of(keys[lane], lane).word;
      found += keys[lane] <= bound ? 1 : 0;
    }
  }
  return found;
}

bool order_first_here(const float* x, int64_t n, int64_t k, bool descending, uint64_t* first) {
  const uint32_t turn = descending ? ~0u : 0u;
  const Words d;
  constexpr auto kWordLanes = static_cast<int64_t>(hn::MaxLanes(Words()));
  HWY_ALIGN uint32_t keys[kLongestOrdered];
  HWY_ALIGN uint64_t words[kMost + kWordLanes + 1];
  const int64_t count = write_keys(x, n, turn, keys);
  int64_t found = n;
  if (n <= kMost)
    for (int64_t i = 0; i < n; ++i) words[i] = SortItem<uint32_t>::of(keys[i], i).word;
  else
    found = collect(keys, count, bound_of(keys, count, k), words);
  if (found > kMost) return false;
  const int64_t whole = (found + kWordLanes - 1) / kWordLanes * kWordLanes;
  std::fill(words + found, words + whole, ~uint64_t{0});
  for (int64_t i = 0; i < found; ++i) {
    const auto word = hn::Set(d, words[i]);
    size_t lower = 0;
    for (int64_t j = 0; j < whole; j += kWordLanes)
      lower += hn::CountTrue(d, hn::Lt(hn::Load(d, words + j), word));
    if (static_cast<int64_t>(lower) < k) first[lower] = words[i];
  }
  return true;
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(order_first_here);

bool order_first(const float* x, int64_t n, int64_t k, bool descending, uint64_t* words) {
  isa();
  return HWY_DYNAMIC_DISPATCH(order_first_here)(x, n, k, descending, words);
}

}  // namespace anymps::cpu
#endif
