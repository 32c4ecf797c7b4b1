// SPDX-License-Identifier: Apache-2.0
// What a Fourier op does, as steps over complex numbers in memory: read, transform the lines of one
// axis after the other, write. The drivers differ only in how they transform a line.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/shape.h"

namespace anymps {

template <typename T>
struct Cx {
  T re = 0, im = 0;
};

// One axis of a tensor [outer, in, inner], which becomes [outer, out, inner]: each line is cut or
// filled with 0 to n, or with the conjugates of what it holds, and its transform cut to `out`.
struct SpectrumPass {
  int64_t outer = 1, inner = 1, in = 1, out = 1, n = 1;
  bool inverse = false, hermitean = false;

  int64_t lines() const { return outer * inner; }
  // Where line i begins in a tensor whose lines have `length` numbers; they are `inner` apart.
  template <typename P>
  P* first_of(P* numbers, int64_t i, int64_t length) const {
    return numbers + i / inner * length * inner + i % inner;
  }
  // Reads line i of `from` into `line`, which has room for n numbers that lie `apart` apart. One
  // number that is not finite makes the whole line NaN, since in every fast transform its sums
  // reach all results.
  template <typename T>
  void read(const Cx<T>* from, int64_t i, Cx<T>* line, int64_t apart = 1) const;
  template <typename T>
  void write(Cx<T>* to, int64_t i, const Cx<T>* line, int64_t apart = 1) const;
};

enum class SpectrumScaling { kNone, kSize, kUnitary };

struct SpectrumPlan {
  Shape start;  // of the complex tensor that is read, and of the one that is written
  std::vector<SpectrumPass> passes;
  double scale = 1;
  int64_t most = 0;  // elements that a buffer needs, which holds each step's result

  void add(size_t axis, int64_t n, int64_t out, bool inverse, bool hermitean);
  const Shape& shape() const { return now_; }

  // For fft, real_to_hermitean_fft and, `to_real`, hermitean_to_real_fft, over axes in [0, rank).
  static SpectrumPlan fft(const Shape& x, const Shape& y, const std::vector<size_t>& axes,
                          bool inverse, bool to_real, SpectrumScaling scaling);
  // For dft, of which the shapes here have no axis of components. No length: what x has.
  static SpectrumPlan dft(const Shape& x, const Shape& y, size_t axis, int64_t length, bool inverse,
                          bool onesided);
  // For stft: of frames that were cut out already.
  static SpectrumPlan frames(const Shape& frames, int64_t bins, int64_t length);

 private:
  explicit SpectrumPlan(Shape shape);
  Shape now_;
};

template <typename T>
void SpectrumPass::read(const Cx<T>* from, int64_t i, Cx<T>* line, int64_t apart) const {
  from = first_of(from, i, in);
  const int64_t held = std::min(in, n);
  T sum = 0;
  for (int64_t k = 0; k < held; ++k) {
    const Cx<T>& value = from[k * inner];
    line[k * apart] = value;
    sum += value.re * 0 + value.im * 0;
  }
  for (int64_t k = held; k < n; ++k) line[k * apart] = {};
  if (std::isnan(sum)) {
    for (int64_t k = 0; k < n; ++k) line[k * apart] = {sum, sum};
    return;
  }
  if (!hermitean) return;
  line[0].im = 0;
  for (int64_t k = n / 2 + 1; k < n; ++k)
    line[k * apart] = {line[(n - k) * apart].re, -line[(n - k) * apart].im};
  if (n % 2 == 0 && n > 0) line[n / 2 * apart].im = 0;
}

template <typename T>
void SpectrumPass::write(Cx<T>* to, int64_t i, const Cx<T>* line, int64_t apart) const {
  to = first_of(to, i, out);
  for (int64_t k = 0; k < out; ++k) to[k * inner] = line[k * apart];
}

}  // namespace anymps
