// SPDX-License-Identifier: Apache-2.0
#include "semantics/random/philox.h"

#include <algorithm>

#include "semantics/special/special_functions.h"

namespace anymps {

double normal_quantile(double p) { return special::normal_place(p - 0.5, p < 0.5 ? p : 1 - p); }

Distribution::Distribution(const Parameters& parameters) : p_(parameters) {
  if (p_.kind != Kind::kTruncated) return;
  cdf_low_ = normal_cdf((p_.low - p_.mean) / p_.deviation);
  cdf_high_ = normal_cdf((p_.high - p_.mean) / p_.deviation);
}

double Distribution::shape(double u) const {
  switch (p_.kind) {
    case Kind::kNormal:
      return p_.mean + p_.deviation * normal_quantile(u);
    case Kind::kTruncated:
      return std::clamp(
          p_.mean + p_.deviation * normal_quantile(cdf_low_ + u * (cdf_high_ - cdf_low_)), p_.low,
          p_.high);
    default:
      return p_.low + u * (p_.high - p_.low);
  }
}

std::array<double, 4> Distribution::block(const Philox& state, int64_t b) const {
  const std::array<uint32_t, 4> words = state.words(static_cast<uint64_t>(b));
  std::array<double, 4> values{};
  if (p_.kind == Kind::kWhole) {
    const auto range = static_cast<uint64_t>(p_.high - p_.low);
    for (size_t i = 0; i < 4; ++i)
      values[i] = p_.low + static_cast<double>(static_cast<uint64_t>(words[i]) * range >> 32);
    return values;
  }
  // Numbers that are never 0 where a logarithm or a quantile is taken: the middle of their step.
  const bool middle = p_.kind != Kind::kUniform;
  const size_t count = per_block();
  for (size_t i = 0; i < count; ++i) {
    if (p_.wide) {
      const uint64_t bits = (uint64_t{words[2 * i]} << 32 | words[2 * i + 1]) >> 11;
      values[i] = (static_cast<double>(bits) + (middle ? 0.5 : 0)) * 0x1p-53;
    } else {
      values[i] = unit(words[i]) + (middle ? 0x1p-25 : 0);
    }
  }
  if (p_.kind == Kind::kBoxMuller) {
    for (size_t i = 0; i + 1 < count; i += 2) {
      const double radius = p_.deviation * std::sqrt(-2 * std::log(values[i]));
      const double angle = 2 * std::numbers::pi * values[i + 1];
      values[i] = p_.mean + radius * std::cos(angle);
      values[i + 1] = p_.mean + radius * std::sin(angle);
    }
    return values;
  }
  for (size_t i = 0; i < count; ++i) values[i] = shape(values[i]);
  return values;
}

}  // namespace anymps
