// SPDX-License-Identifier: Apache-2.0
#include "semantics/philox.h"

#include <algorithm>

namespace anymps {

double normal_quantile(double p) {
  const double q = p - 0.5;
  const auto ratio = [](const double(&a)[8], const double(&b)[8], double r) {
    double top = 0, bottom = 0;
    for (int i = 7; i >= 0; --i) {
      top = top * r + a[i];
      bottom = bottom * r + b[i];
    }
    return top / bottom;
  };
  if (std::abs(q) <= 0.425) {
    static constexpr double kA[8] = {
        3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
        45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727};
    static constexpr double kB[8] = {1.0,
                                     42.313330701600911252,
                                     687.18700749205790830,
                                     5394.1960214247511077,
                                     21213.794301586595867,
                                     39307.895800092710610,
                                     28729.085735721942674,
                                     5226.4952788528545610};
    return q * ratio(kA, kB, 0.180625 - q * q);
  }
  const double tail = q < 0 ? p : 1 - p;
  if (tail <= 0) return q < 0 ? -INFINITY : INFINITY;
  double r = std::sqrt(-std::log(tail)), value;
  if (r <= 5) {
    static constexpr double kC[8] = {1.42343711074968357734,   4.63033784615654529590,
                                     5.76949722146069140550,   3.64784832476320460504,
                                     1.27045825245236838258,   0.241780725177450611770,
                                     0.0227238449892691845833, 7.74545014278341407640e-4};
    static constexpr double kD[8] = {1.0,
                                     2.05319162663775882187,
                                     1.67638483018380384940,
                                     0.689767334985100004550,
                                     0.148103976427480074590,
                                     0.0151986665636164571966,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
    value = ratio(kC, kD, r - 1.6);
  } else {
    static constexpr double kE[8] = {6.65790464350110377720,    5.46378491116411436990,
                                     1.78482653991729133580,    0.296560571828504891230,
                                     0.0265321895265761230930,  1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double kF[8] = {1.0,
                                     0.599832206555887937690,
                                     0.136929880922735805310,
                                     0.0148753612908506148525,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};
    value = ratio(kE, kF, r - 5);
  }
  return q < 0 ? -value : value;
}

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
  const auto count = static_cast<size_t>(per_block());
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
