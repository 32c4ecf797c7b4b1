// SPDX-License-Identifier: Apache-2.0
#include "memory/pack.h"

#include <cstring>

namespace anymps {

void pack(const TensorDesc& desc, const std::byte* from, std::byte* to) {
  const size_t size = size_of(desc.dtype);
  if (desc.count() == 0) return;
  Shape index(desc.shape.size(), 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * desc.strides[i];
    std::memcpy(to, from + offset * static_cast<int64_t>(size), size);
    to += size;
    size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == desc.shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace anymps
