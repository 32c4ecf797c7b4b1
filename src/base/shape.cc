// SPDX-License-Identifier: Apache-2.0
#include "base/shape.h"

#include "base/broadcast.h"

namespace anymps {

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  bool empty = false, overflow = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      fail(Code::kInvalidArgument, "[shape] {} has a negative extent", to_string(shape));
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(count, extent, &count);
  }
  if (empty) return 0;
  if (overflow) fail(Code::kInvalidArgument, "[shape] {} has too many elements", to_string(shape));
  return count;
}

size_t byte_count(DType dtype, const Shape& shape) {
  int64_t bytes = 0;
  const bool overflow =
      __builtin_mul_overflow(element_count(shape), static_cast<int64_t>(size_of(dtype)), &bytes);
  if (overflow)
    fail(Code::kInvalidArgument, "[shape] {} of {} is too large", to_string(shape), name(dtype));
  return bytes;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)  // an empty tensor's other extents may be of any size
    strides[i - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[i]) *
                                          static_cast<uint64_t>(std::max<int64_t>(shape[i], 1)));
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  for (const int64_t extent : shape)
    if (extent == 0) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Shape broadcast(const Shape& a, const Shape& b, const char* who) {
  return broadcast_lists(a, b, [&](int64_t& extent, int64_t other) {
    if (extent == other || other == 1) return;
    if (extent != 1)
      fail(Code::kInvalidArgument, "[{}] shapes {} and {} do not broadcast", who, to_string(a),
           to_string(b));
    extent = other;
  });
}

int64_t normalize_axis(int64_t axis, int64_t rank, const char* who) {
  require(axis >= -rank && axis < rank, "[{}] axis {} is out of range for rank {}", who, axis,
          rank);
  return axis < 0 ? axis + rank : axis;
}

std::string to_string(const TensorDesc& desc) {
  std::string text = name(desc.dtype) + to_string(desc.shape);
  if (!desc.contiguous())
    text += fmt::format(" strides ({})", fmt::join(desc.strides.begin(), desc.strides.end(), ", "));
  return text;
}

Span span_of(const TensorDesc& desc) {
  Span span;
  bool overflow = false;
  for (size_t i = 0; i < desc.shape.size(); ++i) {
    if (desc.shape[i] == 0) return {0, -1};
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(desc.shape[i] - 1, desc.strides[i], &reach);
    int64_t& end = reach < 0 ? span.low : span.high;
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  constexpr int64_t kFar = int64_t{1} << 56;
  if (overflow || span.low <= -kFar || span.high >= kFar)
    fail(Code::kInvalidArgument, "[shape] {} reaches too far", to_string(desc));
  return span;
}

Strides broadcast_strides(const TensorDesc& desc, const Shape& to) {
  Strides strides(to.size(), 0);
  const size_t lead = to.size() - desc.shape.size();
  for (size_t i = 0; i < desc.shape.size(); ++i)
    strides[lead + i] = desc.shape[i] == 1 ? 0 : desc.strides[i];
  return strides;
}

}  // namespace anymps
