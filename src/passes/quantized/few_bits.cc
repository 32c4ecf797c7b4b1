// SPDX-License-Identifier: Apache-2.0
#include "passes/quantized/few_bits.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "base/half.h"

namespace anymps {

namespace {

constexpr int64_t kRowsAtATime = 32;  // columns of a matrix that are read side by side

int steps(float weight, float step, int low, int high) {
  if (step == 0) return 0;
  const float exact = std::clamp(weight / step, static_cast<float>(low), static_cast<float>(high));
  return static_cast<int>(exact + (exact < 0 ? -0.5f : 0.5f));
}

// As the dtype stores it.
template <typename T>
float stored(float step) {
  return static_cast<float>(static_cast<T>(step));
}

template <typename T>
bool has_step(float step) {
  const float size = std::abs(step);
  return size == 0 || (size >= FLT_MIN && std::abs(stored<T>(step) - step) <= size / 64);
}

// The element that lies furthest from 0; nothing where one is not finite.
std::optional<float> furthest(const float* w, int64_t count) {
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite &= std::abs(w[i]) <= FLT_MAX;
    if (std::abs(w[i]) > std::abs(most)) most = w[i];
  }
  return finite ? std::optional(most) : std::nullopt;
}

// There is one step more below 0 than above: a step of the other sign gives it to the furthest
// element. A smaller one than that needs clips it, and may yet be nearer to the others.
template <typename T>
float best_of_4_bits(const float* w, int64_t count, float most) {
  if (most == 0) return 0;
  float best = 0, least = INFINITY;
  for (const float parts : {-8.0f, -8.75f, -9.5f, -7.25f, 7.0f}) {
    const float step = stored<T>(most / parts);
    float error = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float off = (w[i] - static_cast<float>(steps(w[i], step, -8, 7)) * step) / most;
      error += off * off;  // of parts, whose squares are no infinities
    }
    if (error < least) best = step, least = error;
  }
  return best;
}

// A row of weights to a row of `to`, with scales `stride` apart.
template <typename T>
bool round_row(const float* w, int64_t depth, const FewBits& form, uint8_t* to, T* scales,
               int64_t stride) {
  const int64_t group = form.group == 0 ? depth : form.group;
  for (int64_t first = 0; first < depth; first += group, scales += stride) {
    const std::optional<float> most = furthest(w + first, group);
    if (!most || !has_step<T>(*most / (form.bits == 8 ? 127.0f : 8.0f))) return false;
    if (form.bits == 8) {
      const float step = stored<T>(std::abs(*most) / 127);
      for (int64_t k = first; k < first + group; ++k)
        to[k] = static_cast<uint8_t>(steps(w[k], step, -127, 127));
      *scales = static_cast<T>(step);
      continue;
    }
    const float step = best_of_4_bits<T>(w + first, group, *most);
    for (int64_t k = first; k < first + group; k += 2)
      to[k / 2] = static_cast<uint8_t>((steps(w[k], step, -8, 7) + 8) << 4 |
                                       (steps(w[k + 1], step, -8, 7) + 8));
    *scales = static_cast<T>(step);
  }
  return true;
}

template <typename T>
std::shared_ptr<std::vector<T>> room(int64_t count) {
  return std::make_shared<std::vector<T>>(static_cast<size_t>(count));
}

template <typename T>
std::optional<FewBitsMatrix> rounded(const Constant& matrix, const FewBits& form) {
  const Shape& shape = matrix.shape();
  const int64_t rows = shape[form.turns ? 1 : 0], depth = shape[form.turns ? 0 : 1];
  const int64_t row_step = form.turns ? 1 : depth, step = form.turns ? rows : 1;
  const int64_t row_bytes = form.bits == 8 ? depth : depth / 2;
  const int64_t groups = form.group == 0 ? 1 : depth / form.group;
  const auto w = room<uint8_t>(rows * row_bytes);
  const auto scales = room<T>(rows * groups);
  const Constant::Bytes bytes = matrix.data();
  const T* from = reinterpret_cast<const T*>(bytes.get());
  std::vector<float> block(static_cast<size_t>(kRowsAtATime * depth));
  for (int64_t first = 0; first < rows; first += kRowsAtATime) {
    const int64_t count = std::min(kRowsAtATime, rows - first);
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t i = 0; i < count; ++i)
        block[i * depth + k] = static_cast<float>(from[(first + i) * row_step + k * step]);
    for (int64_t i = 0; i < count; ++i)
      if (!round_row(&block[i * depth], depth, form, w->data() + (first + i) * row_bytes,
                     scales->data() + first + i, rows))
        return std::nullopt;
  }
  matrix.release();
  return FewBitsMatrix{
      Constant::view(form.bits == 8 ? DType::kI8 : DType::kU8, {rows, row_bytes}, w->data(), w),
      Constant::view(matrix.dtype(), form.group == 0 ? Shape{rows} : Shape{groups, rows},
                     scales->data(), scales)};
}

}  // namespace

std::optional<FewBitsMatrix> in_few_bits(const Constant& matrix, const FewBits& form) {
  return dispatch<bit(DType::kF32) | bit(DType::kF16) | bit(DType::kBF16)>(
      matrix.dtype(), [&]<typename T>() { return rounded<T>(matrix, form); });
}

}  // namespace anymps
