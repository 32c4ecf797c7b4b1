// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor.h"

namespace anymps {

namespace {

struct Bytes {
  const char *begin, *end;
};

Bytes bytes_of(const Tensor& tensor) {
  const char* first = static_cast<const char*>(tensor.data());
  if (tensor.desc.contiguous()) return {first, first + tensor.desc.bytes()};
  const Span span = span_of(tensor.desc);
  const auto size = static_cast<int64_t>(size_of(tensor.desc.dtype));
  return {first + span.low * size, first + (span.high + 1) * size};
}

}  // namespace

bool share_memory(const Tensor& a, const Tensor& b) {
  if (a.items || b.items) {
    const Tensor &list = a.items ? a : b, &other = a.items ? b : a;
    for (const Tensor& item : *list.items)
      if (share_memory(item, other)) return true;
    return false;
  }
  if (!a.buffer || !b.buffer) return false;
  const Bytes x = bytes_of(a), y = bytes_of(b);
  return x.begin < y.end && y.begin < x.end && x.begin != x.end && y.begin != y.end;
}

}  // namespace anymps
