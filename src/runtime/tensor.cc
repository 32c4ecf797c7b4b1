// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor.h"

namespace anymps {

namespace {

struct Bytes {
  const char *begin, *end;
};

bool meet(const Bytes& a, const Bytes& b) { return a.begin < b.end && b.begin < a.end; }

Bytes bytes_of(const Buffer& buffer) {
  const char* first = static_cast<const char*>(buffer.data());
  return {first, first + buffer.size()};
}

Bytes bytes_of(const Tensor& tensor) {
  const char* first = static_cast<const char*>(tensor.data());
  if (tensor.desc.contiguous()) return {first, first + tensor.desc.bytes()};
  const Span span = span_of(tensor.desc);  // of nothing: low 0, high -1
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
  if (!meet(bytes_of(*a.buffer), bytes_of(*b.buffer))) return false;  // the usual case, at once
  return meet(bytes_of(a), bytes_of(b));
}

void add_reach(const Tensor& tensor, size_t owner, SmallVector<Reach, 16>& to) {
  if (tensor.items)
    for (const Tensor& item : *tensor.items) add_reach(item, owner, to);
  if (tensor.items || !tensor.buffer) return;
  const Bytes bytes = bytes_of(tensor);
  if (bytes.begin < bytes.end) to.push_back({bytes.begin, bytes.end, owner});
}

}  // namespace anymps
