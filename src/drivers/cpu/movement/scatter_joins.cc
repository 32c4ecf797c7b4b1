// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/movement/scatter_joins.h"

#include <cstring>

#include "drivers/cpu/common/by_size.h"

namespace anymps::cpu {

namespace {

// What `update(element, from)` does, as a pair of loops.
template <typename T, typename Update>
ScatterJoin loops_of(Update) {
  return {[](void* to, const void* from, int64_t n) {
            for (int64_t i = 0; i < n; ++i)
              Update{}(static_cast<T*>(to)[i], static_cast<const T*>(from)[i]);
          },
          [](void* to, const int64_t* places, const void* from, int64_t step, int64_t n) {
            for (int64_t i = 0; i < n; ++i)
              Update{}(static_cast<T*>(to)[places[i]], static_cast<const T*>(from)[i * step]);
          }};
}

template <typename T>
ScatterJoin set_loops() {
  ScatterJoin join = loops_of<T>([](T& element, T update) { element = update; });
  join.row = [](void* to, const void* from, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  };
  return join;
}

// Sums, differences, products and quotients of floats are rounded alike whether they are computed
// in the type they are stored in (in f32 for halves) or, as the reference does, in double.
template <typename T>
using Joined = std::conditional_t<kIsComplexType<T>, Wide<T>, Compute<T>>;

template <typename T, ScatterMode mode>
ScatterJoin join_loops() {
  return loops_of<T>([](T& element, T update) {
    const auto open = [](T x) { return static_cast<Joined<T>>(static_cast<Compute<T>>(x)); };
    const auto close = [](Joined<T> x) { return static_cast<T>(static_cast<Compute<T>>(x)); };
    const Joined<T> a = open(element), b = open(update);
    if constexpr (mode == ScatterMode::kAdd) element = close(scalar::add(a, b));
    if constexpr (mode == ScatterMode::kSub) element = close(scalar::sub(a, b));
    if constexpr (mode == ScatterMode::kMul) element = close(scalar::mul(a, b));
    if constexpr (mode == ScatterMode::kDiv) element = close(scalar::div(a, b));
    if constexpr (!kIsComplexType<T>) {
      if constexpr (mode == ScatterMode::kMin) element = close(scalar::min(a, b, true));
      if constexpr (mode == ScatterMode::kMax) element = close(scalar::max(a, b, true));
    }
  });
}

template <typename T, ScatterMode mode>
ScatterJoin reset_loops() {
  return loops_of<T>([](T& element, T) { element = scatter_start<T>(mode); });
}

// What `make` gives for a dtype and a mode, which is one of `modes`.
template <ScatterMode... modes, typename Make>
ScatterJoin loops_for(ScatterMode mode, DType dtype, Make make) {
  ScatterJoin join;
  const auto try_mode = [&]<ScatterMode m>() {
    if (mode != m) return;
    constexpr bool ordered = m == ScatterMode::kMin || m == ScatterMode::kMax;
    join = dispatch < ordered
               ? kReal
               : kNumber > (dtype, [&]<typename T>() { return make.template operator()<T, m>(); });
  };
  (try_mode.template operator()<modes>(), ...);
  return join;
}

}  // namespace

ScatterJoin scatter_join_of(ScatterMode mode, DType dtype) {
  using enum ScatterMode;
  if (mode == kSet) return by_size(size_of(dtype), []<typename T>() { return set_loops<T>(); });
  return loops_for<kAdd, kSub, kMul, kDiv, kMin, kMax>(
      mode == kMean ? kAdd : mode, dtype,
      []<typename T, ScatterMode m>() { return join_loops<T, m>(); });
}

ScatterJoin scatter_reset_of(ScatterMode mode, DType dtype) {
  using enum ScatterMode;
  const bool own = mode == kMul || mode == kMin || mode == kMax;  // others start as sums do
  return loops_for<kAdd, kMul, kMin, kMax>(
      own ? mode : kAdd, dtype, []<typename T, ScatterMode m>() { return reset_loops<T, m>(); });
}

ScatterJoin scatter_count() {
  return loops_of<int64_t>([](int64_t& count, int64_t) { ++count; });
}

void scatter_divide(void* y, const int64_t* counts, int64_t n, int64_t own, DType dtype) {
  dispatch<kNumber>(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < n; ++i)
      if (counts[i] > 0) {
        T& element = static_cast<T*>(y)[i];
        element = scatter_mean(element, counts[i] + own);
      }
  });
}

}  // namespace anymps::cpu
