// SPDX-License-Identifier: Apache-2.0
// The fast Fourier transform of lines of any length: Stockham's algorithm over the prime factors
// of the length while they are small, Bluestein's convolution otherwise.
#pragma once

#include <memory>
#include <vector>

#include "semantics/signal/spectrum.h"

namespace anymps::cpu {

template <typename T>
class Fft {
 public:
  Fft(int64_t n, bool inverse);

  // At most this many numbers are held while and after it is made.
  static int64_t most_numbers(int64_t n);

  int64_t size() const { return n_; }
  int64_t work_size() const;  // numbers of scratch memory that run needs for each line
  // Transforms `count` lines side by side: number k of line i is at lines[k * count + i]. What a
  // line becomes does not depend on the others.
  void run(Cx<T>* lines, Cx<T>* work, int64_t count) const;

 private:
  void stages(Cx<T>* lines, Cx<T>* work, int64_t count) const;
  void bluestein(Cx<T>* lines, Cx<T>* work, int64_t count) const;

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Cx<T>> turns_;                 // exp(-+2*pi*i*k/n)
  std::unique_ptr<Fft> forward_, backward_;  // of Bluestein's convolution
  std::vector<Cx<T>> chirp_, filter_;
};

extern template class Fft<float>;
extern template class Fft<double>;

}  // namespace anymps::cpu
