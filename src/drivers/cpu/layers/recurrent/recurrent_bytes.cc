// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/layers/recurrent/recurrent_bytes.h"

#include <algorithm>
#include <cmath>

#include "drivers/cpu/linear/int_gemm.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kLeastDepth = 8, kMostDepth = 1 << 15;  // sums of bytes fit 32 bits
constexpr int kMost = 128;

bool are_multiples(const float* weights, int64_t depth, float step) {
  for (int64_t i = 0; i < depth; ++i) {
    const float whole = std::nearbyint(weights[i] / step);
    if (!(whole >= -kMost && whole < kMost) || whole * step != weights[i]) return false;
  }
  return true;
}

// The largest weight is one of few multiples of the step, but for the rounding of their quotient.
float step_of(const float* weights, int64_t depth) {
  float most = 0;
  for (int64_t i = 0; i < depth; ++i) most = std::max(most, std::abs(weights[i]));
  if (most == 0) return 1;
  for (int top = kMost; top > 0; --top) {
    const float quotient = most / static_cast<float>(top);
    for (const float step :
         {quotient, std::nextafter(quotient, 0.0f), std::nextafter(quotient, most)})
      if (std::isnormal(step) && are_multiples(weights, depth, step)) return step;
  }
  return 0;
}

}  // namespace

bool takes_byte_weights(int64_t depth) {
  return int_packing().bytes && depth >= kLeastDepth && depth <= kMostDepth;
}

void find_steps(const float* weights, int64_t rows, int64_t depth, float* steps) {
  std::fill_n(steps, rows, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = weights + row * depth;
    // Mostly all rows have one.
    steps[row] = row > 0 && are_multiples(from, depth, steps[row - 1]) ? steps[row - 1]
                                                                       : step_of(from, depth);
    if (steps[row] == 0) return;
  }
}

void ByteWeights::set_column(int64_t panel, int64_t column, const float* weights, float step,
                             int32_t* to) const {
  auto* bytes = reinterpret_cast<int8_t*>(to + panel * words() * row() + column);
  int32_t sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const auto byte = static_cast<int8_t>(std::nearbyint(weights[k] / step));
    bytes[k / 4 * row() * 4 + k % 4] = byte;
    sum += byte;
  }
  int32_t* const steps = to + panels * words() * row();
  reinterpret_cast<float*>(steps)[panel * row() + column] = step;
  steps[panels * row() + panel * row() + column] = sum;
}

void ByteWeights::tell(const int32_t* from, GateProduct& product) const {
  product.words = from;
  product.steps = reinterpret_cast<const float*>(from + panels * words() * row());
  product.sums = from + panels * (words() + 1) * row();
}

}  // namespace anymps::cpu
