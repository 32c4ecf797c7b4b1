// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/integer/int_operands.h"

#include <algorithm>
#include <cstring>

namespace anymps::cpu {

int load_byte(DType dtype, const void* data, int64_t at) {
  return dtype == DType::kI8 ? static_cast<const int8_t*>(data)[at]
                             : static_cast<const uint8_t*>(data)[at];
}

void pack_int_panel(const IntPacking& packing, const IntMatrix& b, bool flip, const uint8_t* from,
                    int64_t depth, int64_t columns, void* to) {
  const int64_t width = packing.width(columns), per_word = packing.per_word();
  const int64_t words = packing.words(depth);
  if (b.column == 1) {
    constexpr int64_t kAtOnce = 256;  // rows whose places fit the stack; whole words
    int64_t offsets[kAtOnce];
    for (int64_t k = 0; k < depth; k += kAtOnce) {
      const int64_t rows = std::min(kAtOnce, depth - k);
      for (int64_t i = 0; i < rows; ++i) offsets[i] = (k + i) * b.row;
      pack_int_panel(packing, {b.dtype, flip, false, from, offsets, rows, columns},
                     static_cast<uint8_t*>(to) + k / per_word * width * 4);
    }
    return;
  }
  if (columns < width || depth % per_word != 0)
    std::memset(to, 0, static_cast<size_t>(words * width) * 4);
  auto* bytes = static_cast<uint8_t*>(to);
  if (packing.bytes && b.row == 1) {  // columns are dense: words lie there
    const uint32_t bits = flip ? 0x80808080u : 0;
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t w = 0; w < words; ++w) {
        const auto count = static_cast<size_t>(std::min<int64_t>(4, depth - 4 * w));
        uint32_t word = bits;  // so that what fills up becomes zero
        std::memcpy(&word, from + j * b.column + 4 * w, count);
        word ^= bits;
        std::memcpy(bytes + (w * width + j) * 4, &word, 4);
      }
    return;
  }
  auto* pairs = static_cast<int16_t*>(to);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t j = 0; j < columns; ++j) {
      const uint8_t byte = from[k * b.row + j * b.column];
      const int64_t place = (k / per_word * width + j) * per_word + k % per_word;
      if (packing.bytes)
        bytes[place] = byte ^ (flip ? 128 : 0);
      else
        pairs[place] = static_cast<int16_t>(load_byte(b.dtype, &byte, 0));
    }
}

void fill_ones(const IntPacking& packing, int64_t depth, void* to) {
  const auto count = static_cast<size_t>(depth);
  std::memset(to, 0, static_cast<size_t>(packing.words(depth)) * 4);
  if (packing.bytes)
    std::memset(to, 1, count);
  else
    std::fill_n(static_cast<int16_t*>(to), count, int16_t{1});
}

void sum_int_panel(const IntPacking& packing, const void* panel, int64_t words, int64_t columns,
                   bool is_unsigned, const void* ones, int32_t* sums) {
  IntProduct p;
  p.a = ones;
  p.b = panel;
  p.rows = 1;
  p.words = words;
  p.columns = columns;
  p.signed_a = is_unsigned;
  p.y = sums;
  multiply_int(packing, p);
}

void IntRight::pack(const IntMatrix& b, const uint8_t* from, const void* zeros, const void* ones,
                    int64_t panel, uint8_t* to) const {
  const int64_t first = panel * full(), count = columns_of(panel);
  const bool flip = flips_to_signed(packing, b.dtype);
  uint8_t* const at = to + panel * panel_bytes();
  pack_int_panel(packing, b, flip, from + first * b.column, depth, count, at);
  auto* sum = reinterpret_cast<int32_t*>(to + tails_at());
  sum_int_panel(packing, at, words(), count, false, ones, sum + first);
  int32_t* zero = sum + panels() * full();
  for (int64_t j = first; j < first + count; ++j)
    zero[j] = (zeros ? load_byte(b.dtype, zeros, j * b.zero_step) : 0) - (flip ? 128 : 0);
}

bool IntRight::plain(const uint8_t* packed) const {
  const int32_t* zero = zeros(packed);
  return std::all_of(zero, zero + columns, [](int32_t value) { return value == 0; });
}

IntColumns IntRight::ends(const uint8_t* packed, int32_t left_zero, const IntTail& tail,
                          uint8_t* memory) const {
  IntColumns ends{memory, padded()};
  auto* start = reinterpret_cast<int32_t*>(memory);
  const int32_t* sum = sums(packed);
  for (int64_t j = 0; j < columns; ++j)
    start[j] =
        static_cast<int32_t>(-static_cast<uint32_t>(left_zero) * static_cast<uint32_t>(sum[j]));
  std::fill(start + columns, start + padded(), 0);
  if (!tail.scale) return ends;
  auto *scale = reinterpret_cast<float*>(start + padded()), *bias = scale + padded();
  for (int64_t j = 0; j < columns; ++j) scale[j] = tail.scale[j * tail.scale_step];
  std::fill(scale + columns, scale + padded(), 0.0f);
  if (tail.bias) {
    std::copy_n(tail.bias, columns, bias);
    std::fill(bias + columns, bias + padded(), 0.0f);
  }
  const Activation act = tail.activation.kind;
  ends.direct =
      (tail.out == DType::kI8 || tail.out == DType::kU8) &&
      (act == Activation::kNone || act == Activation::kRelu || act == Activation::kClamp) &&
      fits_words(depth, scale, tail.bias, columns);
  return ends;
}

void IntColumns::set(IntProduct& p, const IntTail& tail, int64_t first) const {
  const auto* start = reinterpret_cast<const int32_t*>(memory) + first;
  p.tail = tail;
  p.column_start = start;
  p.direct = direct;
  if (!tail.scale) return;
  p.tail.scale = reinterpret_cast<const float*>(start + padded);
  p.tail.scale_step = 1;
  if (tail.bias) p.tail.bias = p.tail.scale + padded;
}

bool IntEnd::init(const KernelRequest& request, int64_t count, bool by_rows, const char* alpha,
                  const char* beta, std::string& why) {
  if (!request.out().contiguous()) return refuse<bool>(why, "y is not contiguous");
  tail_.out = request.out().dtype;
  if (request.op->attr_index("activation") < 0) return true;
  scales_ = true;
  tail_.by_rows = by_rows;
  tail_.activation = tile_activation(request.attrs, alpha, beta);
  if (!tile_has(tail_.activation.kind)) return refuse<bool>(why, "activation");
  for (const size_t i : {4u, 5u}) {
    if (!request.has(i)) continue;
    if (request.in(i).dtype != DType::kF32) return refuse<bool>(why, "a scale or bias is not f32");
    if (!request.in(i).contiguous()) return refuse<bool>(why, "scales or biases have gaps");
  }
  has_scale_ = request.has(4);
  tail_.scale_step = !has_scale_ || request.in(4).count() == 1 ? 0 : 1;
  if (tail_.scale_step && request.in(4).count() != count) return refuse<bool>(why, "scales");
  has_bias_ = request.has(5);
  if (has_bias_ && request.in(5).count() != count) return refuse<bool>(why, "biases");
  has_zero_ = request.has(6);
  return true;
}

IntTail IntEnd::tail(const KernelArgs& args) const {
  IntTail tail = tail_;
  if (!scales_) return tail;
  static constexpr float kOne = 1;
  tail.scale = has_scale_ ? static_cast<const float*>(args.inputs[4]) : &kOne;
  if (has_bias_) tail.bias = static_cast<const float*>(args.inputs[5]);
  if (has_zero_) tail.zero = static_cast<float>(load_byte(tail.out, args.inputs[6], 0));
  return tail;
}

}  // namespace anymps::cpu
