// SPDX-License-Identifier: Apache-2.0
// The fast Fourier transform of one line of any length: Stockham's algorithm over the prime factors
// of the length while they are small, Bluestein's convolution otherwise.
#pragma once

#include <memory>
#include <vector>

#include "semantics/spectrum.h"

namespace anymps::cpu {

template <typename T>
class Fft {
 public:
  Fft(int64_t n, bool inverse);

  // At most this many numbers are held while and after it is made.
  static int64_t most_numbers(int64_t n);

  int64_t size() const { return n_; }
  int64_t work_size() const;  // numbers of scratch memory that run needs
  void run(Cx<T>* line, Cx<T>* work) const;

 private:
  void stages(Cx<T>* line, Cx<T>* work) const;
  void odd_factor(const Cx<T>* a, Cx<T>* b, int64_t p, int64_t step, int64_t stride,
                  int64_t q) const;
  void bluestein(Cx<T>* line, Cx<T>* work) const;

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Cx<T>> turns_;                 // exp(-+2*pi*i*k/n)
  std::unique_ptr<Fft> forward_, backward_;  // of Bluestein's convolution
  std::vector<Cx<T>> chirp_, filter_;
};

extern template class Fft<float>;
extern template class Fft<double>;

}  // namespace anymps::cpu
