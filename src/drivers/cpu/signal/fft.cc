// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/signal/fft.h"

#include <algorithm>
#include <numbers>

#include "drivers/cpu/signal/fft_simd.h"

namespace anymps::cpu {

namespace {

template <typename T>
Cx<T> times(const Cx<T>& a, const Cx<T>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
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
    turns_.reserve(n);
    for (int64_t k = 0; k < n; ++k) turns_.push_back(narrow<T>(turn(k, n, inverse)));
    return;
  }
  factors_.clear();
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  forward_ = std::make_unique<Fft>(m, false);
  backward_ = std::make_unique<Fft>(m, true);
  std::vector<Cx<double>> filter(m);
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    const Cx<double> value = turn(square, 2 * n, inverse);  // exp(-+pi*i*k^2/n)
    chirp_.push_back(narrow<T>(value));
    const Cx<double> part{value.re / static_cast<double>(m), -value.im / static_cast<double>(m)};
    filter[k] = part;
    if (k > 0) filter[m - k] = part;
  }
  const Fft<double> exact(m, false);
  std::vector<Cx<double>> work(exact.work_size());
  exact.run(filter.data(), work.data(), 1);
  for (const Cx<double>& value : filter) filter_.push_back(narrow<T>(value));
}

template <typename T>
int64_t Fft<T>::work_size() const {
  return forward_ ? forward_->size() + forward_->work_size() : n_;
}

template <typename T>
void Fft<T>::run(Cx<T>* lines, Cx<T>* work, int64_t count) const {
  forward_ ? bluestein(lines, work, count) : stages(lines, work, count);
}

template <typename T>
void Fft<T>::stages(Cx<T>* lines, Cx<T>* work, int64_t count) const {
  Cx<T>*from = lines, *to = work;
  int64_t n = n_, stride = 1;
  for (const int64_t p : factors_) {
    const int64_t m = n / p, width = stride * count;
    run_fft_stage({from, to, p, m, width * m, width, turns_.data(), n_, stride});
    std::swap(from, to);
    n = m;
    stride *= p;
  }
  if (from != lines) std::copy_n(from, n_ * count, lines);
}

template <typename T>
void Fft<T>::bluestein(Cx<T>* lines, Cx<T>* work, int64_t count) const {
  const int64_t m = forward_->size();
  Cx<T>* rest = work + m * count;
  const auto scale = [count](const Cx<T>* from, const Cx<T>& by, Cx<T>* to) {
    for (int64_t i = 0; i < count; ++i) to[i] = times(from[i], by);
  };
  for (int64_t k = 0; k < n_; ++k) scale(lines + k * count, chirp_[k], work + k * count);
  std::fill(work + n_ * count, work + m * count, Cx<T>{});
  forward_->run(work, rest, count);
  for (int64_t k = 0; k < m; ++k) scale(work + k * count, filter_[k], work + k * count);
  backward_->run(work, rest, count);
  for (int64_t k = 0; k < n_; ++k) scale(work + k * count, chirp_[k], lines + k * count);
}

template class Fft<float>;
template class Fft<double>;

}  // namespace anymps::cpu
