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
  const Span span = span_of(tensor.desc);  // of nothing: low 0, high -1
  const auto size = static_cast<int64_t>(size_of(tensor.desc.dtype));
  return {first + span.low * size, first + (span.high + 1) * size};
}

}  // namespace

void add_reach(const Tensor& tensor, size_t owner, SmallVector<Reach, 16>& to) {
  if (tensor.items)
    for (const Tensor& item : *tensor.items) add_reach(item, owner, to);
  if (tensor.items || !tensor.buffer) return;
  const Bytes bytes = bytes_of(tensor);
  if (bytes.begin < bytes.end) to.push_back({bytes.begin, bytes.end, owner});
}

}  // namespace anymps
