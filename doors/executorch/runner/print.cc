// SPDX-License-Identifier: Apache-2.0
#include "print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace anymps::runner {

namespace {

constexpr size_t kItemsPerLine = 10;

bool is_integer(amps::DType dtype) {
  switch (dtype) {
    case amps::DType::i8:
    case amps::DType::i16:
    case amps::DType::i32:
    case amps::DType::u8:
    case amps::DType::u16:
    case amps::DType::u32:
      return true;
    default:
      return false;
  }
}

// Whole numbers that a double may not hold.
template <typename T>
T exactly(const common::Array& array, size_t i) {
  T value;
  std::memcpy(&value, array.data.data() + i * sizeof(T), sizeof(T));
  return value;
}

std::string element_text(const common::Array& array, size_t i) {
  const double value = common::element(array, i);
  if (array.dtype == amps::DType::boolean) return value != 0 ? "True" : "False";
  if (array.dtype == amps::DType::i64) return fmt::format("{}", exactly<int64_t>(array, i));
  if (array.dtype == amps::DType::u64) return fmt::format("{}", exactly<uint64_t>(array, i));
  if (is_integer(array.dtype)) return fmt::format("{}", static_cast<int64_t>(value));
  std::string text = fmt::format("{:g}", value);
  // A float that is a whole number ends in a dot, as PyTorch writes it.
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += '.';
  return text;
}

}  // namespace

std::string tensor_text(const common::Array& array, size_t edge) {
  const size_t count = array.count();
  const bool wraps = std::min(count, 2 * edge) > kItemsPerLine;
  std::string text = fmt::format("tensor(sizes=[{}], [", fmt::join(array.shape, ", "));
  size_t printed = 0;
  for (size_t i = 0; i < count; ++i) {
    if (wraps && printed % kItemsPerLine == 0) text += "\n  ";
    text += element_text(array, i);
    if (wraps || i + 1 < count) text += ", ";
    ++printed;
    if (i + 1 != edge || i + edge + 1 >= count) continue;
    if (wraps) {
      text += "\n  ...,";
      // The line after the gap is the short one, so that the last line is full.
      printed = kItemsPerLine - edge % kItemsPerLine;
      if (printed % kItemsPerLine != 0) text += "\n  ";
    } else {
      text += "..., ";
    }
    i = count - edge - 1;
  }
  return text + (wraps ? "\n])" : "])");
}

}  // namespace anymps::runner
