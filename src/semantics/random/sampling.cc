// SPDX-License-Identifier: Apache-2.0
#include "semantics/random/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "semantics/special/special_functions.h"

namespace anymps {

double RandomStream::uniform() {
  if (used_ == 4) {
    // The multiples of an odd number of 64 bits: no two seeds in use differ by one of them.
    const uint64_t tweak = blocks_++ * 0x9E3779B97F4A7C15u;
    Philox block = at_;
    block.key[0] ^= static_cast<uint32_t>(tweak);
    block.key[1] ^= static_cast<uint32_t>(tweak >> 32);
    words_ = block.words(0);
    used_ = 0;
  }
  const size_t i = used_;
  used_ += 2;
  const uint64_t bits = (uint64_t{words_[i]} << 32 | words_[i + 1]) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

double RandomStream::normal() { return normal_quantile(uniform()); }

namespace draw {

namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

bool positive(double x) { return x > 0 && std::isfinite(x); }

double log_factorial(double k) { return special::lgamma(k + 1); }

// Marsaglia and Tsang (2000), for shape >= 1.
double gamma_above_one(RandomStream& stream, double shape) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = stream.normal(), root = 1 + c * x;
    const double u = stream.uniform();
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return d * v;
  }
}

// Hörmann's transformed rejection PTRS (1993), for rate >= 10.
double poisson_by_rejection(RandomStream& stream, double rate) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = stream.uniform() - 0.5, v = stream.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= k * log_rate - rate - log_factorial(k))
      return k;
  }
}

// Hörmann's BTRS (1993), for chance <= 1/2 and count * chance >= 10.
double binomial_by_rejection(RandomStream& stream, double n, double p) {
  const double deviation = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((n + 1) * p), log_odds = std::log(p / (1 - p));
  const double at_mode = log_factorial(mode) + log_factorial(n - mode);
  for (;;) {
    const double u = stream.uniform() - 0.5, v = stream.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return k;
    if (std::log(v * alpha / (a / (us * us) + b)) <=
        at_mode - log_factorial(k) - log_factorial(n - k) + (k - mode) * log_odds)
      return k;
  }
}

}  // namespace

double exponential(RandomStream& stream, double rate) {
  if (!positive(rate)) return kNoNumber;
  return -std::log(stream.uniform()) / rate;
}

double geometric(RandomStream& stream, double chance) {
  if (!(chance > 0 && chance <= 1)) return kNoNumber;
  if (chance == 1) return 1;
  return std::max(1.0, std::ceil(std::log(stream.uniform()) / std::log1p(-chance)));
}

double poisson(RandomStream& stream, double rate) {
  if (rate == 0) return 0;
  if (!positive(rate)) return kNoNumber;
  if (rate >= 10) return poisson_by_rejection(stream, rate);
  // Events at exponential distances until the time is over.
  const double end = std::exp(-rate);
  double k = 0;
  for (double product = stream.uniform(); product > end; product *= stream.uniform()) ++k;
  return k;
}

double standard_gamma(RandomStream& stream, double shape) {
  return std::exp(log_standard_gamma(stream, shape));
}

double log_standard_gamma(RandomStream& stream, double shape) {
  if (!positive(shape)) return kNoNumber;
  if (shape >= 1) return std::log(gamma_above_one(stream, shape));
  const double u = stream.uniform();
  return std::log(gamma_above_one(stream, shape + 1)) + std::log(u) / shape;
}

double normal(RandomStream& stream, double mean, double deviation) {
  return deviation >= 0 ? mean + deviation * stream.normal() : kNoNumber;
}

double log_normal(RandomStream& stream, double mean, double deviation) {
  return std::exp(normal(stream, mean, deviation));
}

double cauchy(RandomStream& stream, double median, double scale) {
  if (!positive(scale)) return kNoNumber;
  return median + scale * std::tan(std::numbers::pi * (stream.uniform() - 0.5));
}

double binomial(RandomStream& stream, double count, double chance) {
  if (!(count >= 0 && std::isfinite(count) && chance >= 0 && chance <= 1)) return kNoNumber;
  count = std::floor(count);
  if (chance > 0.5) return count - binomial(stream, count, 1 - chance);
  if (chance == 0 || count == 0) return 0;
  if (count * chance >= 10) return binomial_by_rejection(stream, count, chance);
  // Trials from one success to the next until all are done.
  double successes = 0, trials = 0;
  for (;;) {
    trials += geometric(stream, chance);
    if (trials > count) return successes;
    ++successes;
  }
}

}  // namespace draw

void dirichlet_line(const Philox& state, uint64_t first, std::vector<double>& line) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    RandomStream stream(state, first + i);
    line[i] = draw::log_standard_gamma(stream, line[i]);
    if (line[i] > largest) largest = line[i];
  }
  for (double& x : line) sum += x = std::exp(x - largest);
  for (double& x : line) x /= sum;
}

int64_t whole_number(const Philox& state, uint64_t index, int64_t low, int64_t high) {
  const std::array<uint32_t, 4> words = state.words(index);
  const uint64_t upper = uint64_t{words[0]} << 32 | words[1],
                 lower = uint64_t{words[2]} << 32 | words[3];
  const uint64_t size = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (size == 0) return static_cast<int64_t>(upper);  // all of 64 bits
  // (upper * 2^64 + lower) * size / 2^128.
  const auto product = [](uint64_t a, uint64_t b) {
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
    const uint64_t cross = a0 * b1 + (middle & 0xffffffffu);
    return std::array<uint64_t, 2>{a1 * b1 + (middle >> 32) + (cross >> 32), a * b};
  };
  const auto [whole, fraction] = product(upper, size);
  const uint64_t carry = product(lower, size)[0];
  const uint64_t place = whole + (fraction + carry < fraction ? 1 : 0);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + place);
}

std::vector<int64_t> permutation(const Philox& state, int64_t count) {
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < keys.size(); i += 2) {
    const std::array<uint32_t, 4> words = state.words(i / 2);
    keys[i] = uint64_t{words[0]} << 32 | words[1];
    if (i + 1 < keys.size()) keys[i + 1] = uint64_t{words[2]} << 32 | words[3];
  }
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int64_t i) { return keys[i]; };
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  return order;
}

}  // namespace anymps
