// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_view.h"

namespace anymps {

TensorDesc desc_of(const TensorView& view) {
  TensorDesc desc(view.dtype, Shape(view.dims, view.dims + view.rank));
  if (!row_major(view)) desc.strides = Strides(view.strides, view.strides + view.rank);
  return desc;
}

ByteRange byte_range(const TensorDesc& desc) {
  const Span span = span_of(desc);  // of nothing: low 0, high -1
  const auto size = static_cast<int64_t>(size_of(desc.dtype));
  return {span.low * size, (span.high + 1) * size};
}

Tensor borrowed(const TensorView& view) {
  Tensor tensor;
  tensor.desc = desc_of(view);
  const ByteRange range = byte_range(tensor.desc);
  tensor.buffer = Buffer::external(static_cast<char*>(view.data) + range.begin,
                                   range.end - range.begin, nullptr);
  tensor.offset = -range.begin;
  return tensor;
}

}  // namespace anymps
