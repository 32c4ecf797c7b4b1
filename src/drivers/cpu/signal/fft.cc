// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/signal/fft.h"

#include <algorithm>
#include <numbers>

namespace anymps::cpu {

namespace {

constexpr int64_t kLargestFactor = 31;

template <typename T>
Cx<T> times(const Cx<T>& a, const Cx<T>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename T>
Cx<T> plus(const Cx<T>& a, const Cx<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename T>
Cx<T> minus(const Cx<T>& a, const Cx<T>& b) {
  return {a.re - b.re, a.im - b.im};
}

Cx<double> turn(int64_t k, int64_t n, bool inverse) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
}

template <typename T>
Cx<T> narrow(const Cx<double>& x) {
  return {static_cast<T>(x.re), static_cast<T>(x.im)};
}

// What is left of a length after its small factors.
int64_t without_small_factors(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor && n > 1; ++p)
    while (n % p == 0) n /= p;
  return n;
}

}  // namespace

template <typename T>
int64_t Fft<T>::most_numbers(int64_t n) {
  // Bluestein's convolution has a length below 4n: its filter, the turns of its three transforms,
  // and the work for the exact one.
  return without_small_factors(n) <= 1 ? n : n * (1 + 4 * 6);
}

template <typename T>
Fft<T>::Fft(int64_t n, bool inverse) : n_(n) {
  int64_t rest = n;
  while (rest % 4 == 0) factors_.push_back(4), rest /= 4;
  if (rest % 2 == 0) factors_.insert(factors_.begin(), 2), rest /= 2;
  for (int64_t p = 3; p <= kLargestFactor && rest > 1; p += 2)
    while (rest % p == 0) factors_.push_back(p), rest /= p;
  if (rest <= 1) {
    turns_.reserve(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) turns_.push_back(narrow<T>(turn(k, n, inverse)));
    return;
  }
  factors_.clear();
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  forward_ = std::make_unique<Fft>(m, false);
  backward_ = std::make_unique<Fft>(m, true);
  std::vector<Cx<double>> filter(static_cast<size_t>(m));
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    const Cx<double> value = turn(square, 2 * n, inverse);  // exp(-+pi*i*k^2/n)
    chirp_.push_back(narrow<T>(value));
    const Cx<double> part{value.re / static_cast<double>(m), -value.im / static_cast<double>(m)};
    filter[k] = part;
    if (k > 0) filter[m - k] = part;
  }
  const Fft<double> exact(m, false);
  std::vector<Cx<double>> work(static_cast<size_t>(exact.work_size()));
  exact.run(filter.data(), work.data());
  for (const Cx<double>& value : filter) filter_.push_back(narrow<T>(value));
}

template <typename T>
int64_t Fft<T>::work_size() const {
  return forward_ ? forward_->size() + forward_->work_size() : n_;
}

template <typename T>
void Fft<T>::run(Cx<T>* line, Cx<T>* work) const {
  forward_ ? bluestein(line, work) : stages(line, work);
}

template <typename T>
void Fft<T>::stages(Cx<T>* line, Cx<T>* work) const {
  Cx<T>*from = line, *to = work;
  int64_t n = n_, stride = 1;
  for (const int64_t p : factors_) {
    const int64_t m = n / p, step = stride * m;
    for (int64_t q = 0; q < m; ++q) {
      const auto twiddle = [&](int64_t j) { return turns_[q * j * stride]; };
      const Cx<T>* a = from + stride * q;
      Cx<T>* b = to + stride * p * q;
      if (p == 2) {
        const Cx<T> w = twiddle(1);
        for (int64_t k = 0; k < stride; ++k) {
          b[k] = plus(a[k], a[k + step]);
          b[k + stride] = times(minus(a[k], a[k + step]), w);
        }
      } else if (p == 4) {
        const Cx<T> w1 = twiddle(1), w2 = twiddle(2), w3 = twiddle(3);
        const bool down = turns_[n_ / 4].im < 0;
        for (int64_t k = 0; k < stride; ++k) {
          const Cx<T> even = plus(a[k], a[k + 2 * step]), odd = plus(a[k + step], a[k + 3 * step]);
          const Cx<T> even2 = minus(a[k], a[k + 2 * step]);
          const Cx<T> odd2 = minus(a[k + step], a[k + 3 * step]);
          const Cx<T> turned = down ? Cx<T>{odd2.im, -odd2.re} : Cx<T>{-odd2.im, odd2.re};
          b[k] = plus(even, odd);
          b[k + stride] = times(plus(even2, turned), w1);
          b[k + 2 * stride] = times(minus(even, odd), w2);
          b[k + 3 * stride] = times(minus(even2, turned), w3);
        }
      } else {
        odd_factor(a, b, p, step, stride, q);
      }
    }
    std::swap(from, to);
    n = m;
    stride *= p;
  }
  if (from != line) std::copy_n(from, n_, line);
}

// Elements r and p - r have conjugate factors, so their sum and difference are taken first.
template <typename T>
void Fft<T>::odd_factor(const Cx<T>* a, Cx<T>* b, int64_t p, int64_t step, int64_t stride,
                        int64_t q) const {
  const int64_t half = p / 2;
  Cx<T> sums[kLargestFactor / 2 + 1], parts[kLargestFactor / 2 + 1];
  for (int64_t k = 0; k < stride; ++k) {
    Cx<T> all = a[k];
    for (int64_t r = 1; r <= half; ++r) {
      const Cx<T>&x = a[k + r * step], &y = a[k + (p - r) * step];
      sums[r] = plus(x, y);
      parts[r] = minus(x, y);
      all = plus(all, sums[r]);
    }
    b[k] = all;
    for (int64_t j = 1; j <= half; ++j) {
      Cx<T> even = a[k], odd;
      for (int64_t r = 1; r <= half; ++r) {
        const Cx<T>& w = turns_[r * j % p * (n_ / p)];
        even = {even.re + w.re * sums[r].re, even.im + w.re * sums[r].im};
        odd = {odd.re - w.im * parts[r].im, odd.im + w.im * parts[r].re};
      }
      b[k + j * stride] = times(plus(even, odd), turns_[q * j * stride]);
      b[k + (p - j) * stride] = times(minus(even, odd), turns_[q * (p - j) * stride]);
    }
  }
}

template <typename T>
void Fft<T>::bluestein(Cx<T>* line, Cx<T>* work) const {
  const int64_t m = forward_->size();
  Cx<T>* rest = work + m;
  for (int64_t k = 0; k < n_; ++k) work[k] = times(line[k], chirp_[k]);
  for (int64_t k = n_; k < m; ++k) work[k] = {};
  forward_->run(work, rest);
  for (int64_t k = 0; k < m; ++k) work[k] = times(work[k], filter_[k]);
  backward_->run(work, rest);
  for (int64_t k = 0; k < n_; ++k) line[k] = times(work[k], chirp_[k]);
}

template class Fft<float>;
template class Fft<double>;

}  // namespace anymps::cpu
