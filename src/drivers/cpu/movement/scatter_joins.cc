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

template <typename T>
Joined<T> opened(T value) {
  return static_cast<Joined<T>>(static_cast<Compute<T>>(value));
}
template <typename T>
T closed(Joined<T> value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

template <typename T, ScatterMode mode>
ScatterJoin join_loops() {
  return loops_of<T>([](T& element, T update) {
    const Joined<T> a = opened(element), b = opened(update);
    if constexpr (mode == ScatterMode::kAdd) element = closed<T>(scalar::add(a, b));
    if constexpr (mode == ScatterMode::kSub) element = closed<T>(scalar::sub(a, b));
    if constexpr (mode == ScatterMode::kMul) element = closed<T>(scalar::mul(a, b));
    if constexpr (mode == ScatterMode::kDiv) element = closed<T>(scalar::div(a, b));
    if constexpr (!kIsComplexType<T>) {
      if constexpr (mode == ScatterMode::kMin) element = closed<T>(scalar::min(a, b, true));
      if constexpr (mode == ScatterMode::kMax) element = closed<T>(scalar::max(a, b, true));
    }
  });
}

template <typename T, ScatterMode mode>
ScatterJoin reset_loops() {
  return loops_of<T>([](T& element, T) { element = scatter_start<T>(mode); });
}

}  // namespace

ScatterJoin scatter_join_of(ScatterMode mode, DType dtype) {
  switch (mode) {
    case ScatterMode::kSet:
      return by_size(size_of(dtype), []<typename T>() { return set_loops<T>(); });
    case ScatterMode::kAdd:
    case ScatterMode::kMean:
      return dispatch<kNumber>(dtype,
                               []<typename T>() { return join_loops<T, ScatterMode::kAdd>(); });
    case ScatterMode::kSub:
      return dispatch<kNumber>(dtype,
                               []<typename T>() { return join_loops<T, ScatterMode::kSub>(); });
    case ScatterMode::kMul:
      return dispatch<kNumber>(dtype,
                               []<typename T>() { return join_loops<T, ScatterMode::kMul>(); });
    case ScatterMode::kDiv:
      return dispatch<kNumber>(dtype,
                               []<typename T>() { return join_loops<T, ScatterMode::kDiv>(); });
    case ScatterMode::kMin:
      return dispatch<kReal>(dtype,
                             []<typename T>() { return join_loops<T, ScatterMode::kMin>(); });
    case ScatterMode::kMax:
      return dispatch<kReal>(dtype,
                             []<typename T>() { return join_loops<T, ScatterMode::kMax>(); });
  }
  return {};
}

ScatterJoin scatter_reset_of(ScatterMode mode, DType dtype) {
  switch (mode) {
    case ScatterMode::kMul:
      return dispatch<kNumber>(dtype,
                               []<typename T>() { return reset_loops<T, ScatterMode::kMul>(); });
    case ScatterMode::kMin:
      return dispatch<kReal>(dtype,
                             []<typename T>() { return reset_loops<T, ScatterMode::kMin>(); });
    case ScatterMode::kMax:
      return dispatch<kReal>(dtype,
                             []<typename T>() { return reset_loops<T, ScatterMode::kMax>(); });
    default:
      return dispatch<kNumber>(dtype,
                               []<typename T>() { return reset_loops<T, ScatterMode::kAdd>(); });
  }
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
