// SPDX-License-Identifier: Apache-2.0
// Transforms of real lines of even length by a complex one of half the length: numbers 2j and
// 2j + 1 are the parts of one complex number. Lines lie side by side as in fft.h.
#pragma once

#include <numbers>

#include "drivers/cpu/signal/fft.h"

namespace anymps::cpu {

template <typename T>
class RealFft {
 public:
  // Of lines that this pass reads, which are real, or writes, which become so.
  explicit RealFft(const SpectrumPass& pass)
      : pass_(pass), half_(pass.n / 2), fft_(pass.n / 2, pass.inverse) {
    for (int64_t k = 0; k <= half_; ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(pass.n);
      turns_.push_back({static_cast<T>(std::cos(angle)),
                        static_cast<T>(pass.inverse ? std::sin(angle) : -std::sin(angle))});
    }
  }
  int64_t numbers() const { return half_ + fft_.work_size(); }  // that run needs for each line

  // Lines [first, first + count) of real numbers, of which the first half of the results is kept.
  void forward(const Cx<T>* from, Cx<T>* to, int64_t first, int64_t count, Cx<T>* z) const {
    const int64_t held = std::min(pass_.in, pass_.n);
    for (int64_t i = 0; i < count; ++i) {
      const Cx<T>* line = pass_.first_of(from, first + i, pass_.in);
      const auto value = [&](int64_t k) { return k < held ? line[k * pass_.inner].re : T{0}; };
      T sum = 0;
      for (int64_t j = 0; j < half_; ++j) {
        z[j * count + i] = {value(2 * j), value(2 * j + 1)};
        sum += z[j * count + i].re * 0 + z[j * count + i].im * 0;
      }
      if (std::isnan(sum)) fill(z + i, count, sum);
    }
    fft_.run(z, z + half_ * count, count);
    for (int64_t i = 0; i < count; ++i) {
      Cx<T>* line = pass_.first_of(to, first + i, pass_.out);
      for (int64_t k = 0; k < pass_.out; ++k) line[k * pass_.inner] = joined(z + i, count, k);
    }
  }

  // Lines that hold the first half of a spectrum, whose results are real.
  void backward(const Cx<T>* from, Cx<T>* to, int64_t first, int64_t count, Cx<T>* z) const {
    const int64_t held = std::min(pass_.in, pass_.n);
    for (int64_t i = 0; i < count; ++i) {
      const Cx<T>* line = pass_.first_of(from, first + i, pass_.in);
      const auto value = [&](int64_t k) -> Cx<T> {
        if (k >= held) return {};
        const Cx<T>& x = line[k * pass_.inner];
        return {x.re, k == 0 || k == half_ ? T{0} : x.im};
      };
      T sum = 0;
      for (int64_t k = 0; k < held; ++k)
        sum += line[k * pass_.inner].re * 0 + line[k * pass_.inner].im * 0;
      for (int64_t k = 0; k < half_; ++k) {
        const Cx<T> a = value(k), b = value(half_ - k), w = turns_[k];
        const Cx<T> even{a.re + b.re, a.im - b.im}, odd{a.re - b.re, a.im + b.im};
        z[k * count + i] = {even.re - (odd.re * w.im + odd.im * w.re),
                            even.im + (odd.re * w.re - odd.im * w.im)};
      }
      if (std::isnan(sum)) fill(z + i, count, sum);
    }
    fft_.run(z, z + half_ * count, count);
    for (int64_t i = 0; i < count; ++i) {
      Cx<T>* line = pass_.first_of(to, first + i, pass_.out);
      for (int64_t j = 0; j < half_; ++j) {
        line[2 * j * pass_.inner] = {z[j * count + i].re, 0};
        line[(2 * j + 1) * pass_.inner] = {z[j * count + i].im, 0};
      }
    }
  }

 private:
  void fill(Cx<T>* line, int64_t apart, T value) const {
    for (int64_t j = 0; j < half_; ++j) line[j * apart] = {value, value};
  }
  // Result k of the real line, from those of its even and its odd elements, which z holds.
  Cx<T> joined(const Cx<T>* z, int64_t apart, int64_t k) const {
    if (k == 0 || k == half_)  // real, but NaN stays
      return {k == 0 ? z->re + z->im : z->re - z->im, z->re * 0 + 0};
    const Cx<T>&a = z[k * apart], &b = z[(half_ - k) * apart], w = turns_[k];
    const Cx<T> even{(a.re + b.re) / 2, (a.im - b.im) / 2},
        odd{(a.im + b.im) / 2, (b.re - a.re) / 2};
    return {even.re + odd.re * w.re - odd.im * w.im, even.im + odd.re * w.im + odd.im * w.re};
  }

  SpectrumPass pass_;
  int64_t half_;
  Fft<T> fft_;
  std::vector<Cx<T>> turns_;  // exp(-+2*pi*i*k/n)
};

}  // namespace anymps::cpu
