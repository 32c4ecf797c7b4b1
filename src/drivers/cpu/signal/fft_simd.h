// SPDX-License-Identifier: Apache-2.0
// One stage of a fast Fourier transform, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "semantics/signal/spectrum.h"

namespace anymps::cpu {

inline constexpr int64_t kLargestFactor = 31;

// Butterflies of p numbers that lie `step` apart in `from`; their results go to `to`, `width`
// apart. `width` neighbours share their factors: the results of earlier stages, for each of the
// lines that are transformed side by side.
template <typename T>
struct FftStage {
  const Cx<T>* from = nullptr;
  Cx<T>* to = nullptr;
  int64_t p = 2, m = 1;  // m butterflies
  int64_t step = 1, width = 1;
  const Cx<T>* turns = nullptr;  // exp(-+2*pi*i*k/n)
  int64_t n = 1, turn = 1;       // butterfly q turns its j-th result by turns[q * j * turn]
};

void run_fft_stage(const FftStage<float>& stage);
void run_fft_stage(const FftStage<double>& stage);

}  // namespace anymps::cpu
