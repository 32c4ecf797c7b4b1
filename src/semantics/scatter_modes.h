// SPDX-License-Identifier: Apache-2.0
// How a scatter joins an update with the element that is there. Each update is rounded to the
// element's type, so that all drivers agree on collisions.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "semantics/scalar_functions.h"

namespace anymps {

enum class ScatterMode { kSet, kAdd, kSub, kMul, kDiv, kMin, kMax, kMean };

// In the enum's order.
inline std::vector<std::string> scatter_mode_choices() {
  return {"set", "add", "sub", "mul", "div", "min", "max", "mean"};
}

inline ScatterMode parse_scatter_mode(const std::string& mode) {
  const std::vector<std::string> choices = scatter_mode_choices();
  for (size_t i = 0; i < choices.size(); ++i)
    if (choices[i] == mode) return static_cast<ScatterMode>(i);
  return ScatterMode::kSet;
}

// What changes nothing: where an element starts that does not count itself.
template <typename T>
T scatter_start(ScatterMode mode) {
  using C = Compute<T>;
  if (mode == ScatterMode::kMul) return static_cast<T>(C(1));
  if constexpr (!kIsComplexType<T>) {
    using Limits = std::numeric_limits<C>;
    if (mode == ScatterMode::kMin)
      return static_cast<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
    if (mode == ScatterMode::kMax)
      return static_cast<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  }
  return static_cast<T>(C(0));
}

// A sum over a count; of integers rounded down.
template <typename T>
T scatter_mean(T sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    const auto divisor =
        static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(count);
    auto quotient = sum / divisor;
    if (std::is_signed_v<T> && sum % divisor != 0 && sum < 0) --quotient;
    return static_cast<T>(quotient);
  } else {
    return narrow<T>(widen(sum) / static_cast<double>(count));
  }
}

// For modes other than kSet, which moves bytes; min and max are for real types alone.
template <typename T>
void scatter_join(T& element, T update, ScatterMode mode) {
  const Wide<T> a = widen(element), b = widen(update);
  switch (mode) {
    case ScatterMode::kSet:
      element = update;
      break;
    case ScatterMode::kAdd:
    case ScatterMode::kMean:  // a sum, until all updates are in
      element = narrow<T>(scalar::add(a, b));
      break;
    case ScatterMode::kSub:
      element = narrow<T>(scalar::sub(a, b));
      break;
    case ScatterMode::kMul:
      element = narrow<T>(scalar::mul(a, b));
      break;
    case ScatterMode::kDiv:
      element = narrow<T>(scalar::div(a, b));
      break;
    case ScatterMode::kMin:
      if constexpr (!scalar::kIsComplex<Wide<T>>) element = narrow<T>(scalar::min(a, b, true));
      break;
    case ScatterMode::kMax:
      if constexpr (!scalar::kIsComplex<Wide<T>>) element = narrow<T>(scalar::max(a, b, true));
      break;
  }
}

}  // namespace anymps
