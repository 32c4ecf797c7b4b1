// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/fft.h"

#include <cmath>
#include <numbers>

namespace anymps::cpu {

namespace {

constexpr int64_t kLargestFactor = 31;

Cx times(const Cx& a, const Cx& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Cx plus(const Cx& a, const Cx& b) { return {a.re + b.re, a.im + b.im}; }
Cx minus(const Cx& a, const Cx& b) { return {a.re - b.re, a.im - b.im}; }

Cx turn(int64_t k, int64_t n, bool inverse) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
}

}  // namespace

Fft::Fft(int64_t n, bool inverse) : n_(n) {
  int64_t rest = n;
  while (rest % 4 == 0) factors_.push_back(4), rest /= 4;
  for (int64_t p = 2; p <= kLargestFactor && rest > 1; ++p)
    while (rest % p == 0) factors_.push_back(p), rest /= p;
  if (rest <= 1) {
    for (int64_t k = 0; k < n; ++k) turns_.push_back(turn(k, n, inverse));
    return;
  }
  factors_.clear();
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  forward_ = std::make_unique<Fft>(m, false);
  backward_ = std::make_unique<Fft>(m, true);
  filter_.resize(static_cast<size_t>(m));
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    const Cx value = turn(square, 2 * n, inverse);  // exp(-+pi*i*k^2/n)
    chirp_.push_back(value);
    const Cx conjugate{value.re / static_cast<double>(m), -value.im / static_cast<double>(m)};
    filter_[static_cast<size_t>(k)] = conjugate;
    if (k > 0) filter_[static_cast<size_t>(m - k)] = conjugate;
  }
  std::vector<Cx> work(static_cast<size_t>(forward_->work_size()));
  forward_->run(filter_.data(), work.data());
}

int64_t Fft::work_size() const { return forward_ ? forward_->size() + forward_->work_size() : n_; }

void Fft::run(Cx* line, Cx* work) const { forward_ ? bluestein(line, work) : stages(line, work); }

void Fft::stages(Cx* line, Cx* work) const {
  Cx *from = line, *to = work;
  int64_t n = n_, stride = 1;
  for (const int64_t p : factors_) {
    const int64_t m = n / p;
    for (int64_t q = 0; q < m; ++q) {
      const auto twiddle = [&](int64_t j) { return turns_[static_cast<size_t>(q * j * stride)]; };
      const Cx* a = from + stride * q;
      Cx* b = to + stride * p * q;
      const int64_t step = stride * m;
      if (p == 2) {
        const Cx w = twiddle(1);
        for (int64_t k = 0; k < stride; ++k) {
          b[k] = plus(a[k], a[k + step]);
          b[k + stride] = times(minus(a[k], a[k + step]), w);
        }
      } else if (p == 4) {
        const Cx w1 = twiddle(1), w2 = twiddle(2), w3 = twiddle(3);
        const Cx quarter = turns_[static_cast<size_t>(n_ / 4)];
        for (int64_t k = 0; k < stride; ++k) {
          const Cx even = plus(a[k], a[k + 2 * step]), odd = plus(a[k + step], a[k + 3 * step]);
          const Cx even2 = minus(a[k], a[k + 2 * step]);
          const Cx odd2 = times(minus(a[k + step], a[k + 3 * step]), quarter);
          b[k] = plus(even, odd);
          b[k + stride] = times(plus(even2, odd2), w1);
          b[k + 2 * stride] = times(minus(even, odd), w2);
          b[k + 3 * stride] = times(minus(even2, odd2), w3);
        }
      } else {
        for (int64_t j = 0; j < p; ++j) {
          const Cx w = twiddle(j);
          for (int64_t k = 0; k < stride; ++k) {
            Cx sum = a[k];
            for (int64_t r = 1; r < p; ++r)
              sum = plus(sum,
                         times(a[k + r * step], turns_[static_cast<size_t>(r * j % p * (n_ / p))]));
            b[k + j * stride] = times(sum, w);
          }
        }
      }
    }
    std::swap(from, to);
    n = m;
    stride *= p;
  }
  if (from != line) std::copy_n(from, n_, line);
}

void Fft::bluestein(Cx* line, Cx* work) const {
  const int64_t m = forward_->size();
  Cx* rest = work + m;
  for (int64_t k = 0; k < n_; ++k) work[k] = times(line[k], chirp_[static_cast<size_t>(k)]);
  for (int64_t k = n_; k < m; ++k) work[k] = {};
  forward_->run(work, rest);
  for (int64_t k = 0; k < m; ++k) work[k] = times(work[k], filter_[static_cast<size_t>(k)]);
  backward_->run(work, rest);
  for (int64_t k = 0; k < n_; ++k) line[k] = times(work[k], chirp_[static_cast<size_t>(k)]);
}

}  // namespace anymps::cpu
