// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/common/interleave.h"

#include <type_traits>

#include "base/error.h"
#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/common/interleave.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Wider ones take more shuffles across their parts.
template <typename T>
using Part = hn::CappedTag<T, 32 / sizeof(T)>;

template <typename T, int64_t planes>
void interleave(const T* from, int64_t plane, int64_t count, T* to) {
  const Part<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](int64_t p, int64_t i) HWY_ATTR { return hn::LoadU(d, from + p * plane + i); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    T* y = to + i * planes;
    if constexpr (planes == 2)
      hn::StoreInterleaved2(at(0, i), at(1, i), d, y);
    else if constexpr (planes == 3)
      hn::StoreInterleaved3(at(0, i), at(1, i), at(2, i), d, y);
    else
      hn::StoreInterleaved4(at(0, i), at(1, i), at(2, i), at(3, i), d, y);
  }
  for (; i < count; ++i)
    for (int64_t p = 0; p < planes; ++p) to[i * planes + p] = from[p * plane + i];
}

template <typename T, int64_t planes>
void separate(const T* from, int64_t count, T* to, int64_t plane) {
  const Part<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const T* x = from + i * planes;
    hn::Vec<Part<T>> part[4];
    if constexpr (planes == 2)
      hn::LoadInterleaved2(d, x, part[0], part[1]);
    else if constexpr (planes == 3)
      hn::LoadInterleaved3(d, x, part[0], part[1], part[2]);
    else
      hn::LoadInterleaved4(d, x, part[0], part[1], part[2], part[3]);
    for (int64_t p = 0; p < planes; ++p) hn::StoreU(part[p], d, to + p * plane + i);
  }
  for (; i < count; ++i)
    for (int64_t p = 0; p < planes; ++p) to[p * plane + i] = from[i * planes + p];
}

template <typename T>
void every_second(const T* from, int64_t count, T* to) {
  const Part<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // What lies behind the last element is not read.
  for (; i + lanes < count; i += lanes) {
    hn::Vec<Part<T>> taken, left;
    hn::LoadInterleaved2(d, from + 2 * i, taken, left);
    hn::StoreU(taken, d, to + i);
  }
  for (; i < count; ++i) to[i] = from[2 * i];
}

// As by_size(), for elements of which there are vectors.
template <typename Fn>
void with_type(size_t element, Fn&& fn) {
  by_size(element, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>)
      fn.template operator()<T>();
    else
      fail(Code::kInternal, "[cpu] no vectors of elements of {} bytes", element);
  });
}

void interleave_here(size_t element, const void* from, int64_t plane, int64_t planes, int64_t count,
                     void* to) {
  with_type(element, [&]<typename T>() {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    if (planes == 2) return interleave<T, 2>(x, plane, count, y);
    if (planes == 3) return interleave<T, 3>(x, plane, count, y);
    interleave<T, 4>(x, plane, count, y);
  });
}

void separate_here(size_t element, const void* from, int64_t planes, int64_t count, void* to,
                   int64_t plane) {
  with_type(element, [&]<typename T>() {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    if (planes == 2) return separate<T, 2>(x, count, y, plane);
    if (planes == 3) return separate<T, 3>(x, count, y, plane);
    separate<T, 4>(x, count, y, plane);
  });
}

void every_second_here(size_t element, const void* from, int64_t count, void* to) {
  with_type(element, [&]<typename T>() {
    every_second(static_cast<const T*>(from), count, static_cast<T*>(to));
  });
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(interleave_here);
HWY_EXPORT(separate_here);
HWY_EXPORT(every_second_here);

void interleave_planes(size_t element, const void* from, int64_t plane, int64_t planes,
                       int64_t count, void* to) {
  isa();
  HWY_DYNAMIC_DISPATCH(interleave_here)(element, from, plane, planes, count, to);
}

void separate_planes(size_t element, const void* from, int64_t planes, int64_t count, void* to,
                     int64_t plane) {
  isa();
  HWY_DYNAMIC_DISPATCH(separate_here)(element, from, planes, count, to, plane);
}

void take_every_second(size_t element, const void* from, int64_t count, void* to) {
  isa();
  HWY_DYNAMIC_DISPATCH(every_second_here)(element, from, count, to);
}

}  // namespace anymps::cpu
#endif
