// SPDX-License-Identifier: Apache-2.0
// A tensor at run time: a description and a piece of a buffer.
#pragma once

#include "base/shape.h"
#include "memory/buffer.h"

namespace anymps {

struct Tensor {
  TensorDesc desc;
  BufferRef buffer;
  size_t offset = 0;  // bytes from the start of the buffer to element [0, …, 0]

  void* data() const { return static_cast<char*>(buffer->data()) + offset; }
};

}  // namespace anymps
