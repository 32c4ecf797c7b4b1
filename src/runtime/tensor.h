// SPDX-License-Identifier: Apache-2.0
// A tensor at run time: a description and a piece of a buffer; or a list of tensors, or nothing.
#pragma once

#include <memory>
#include <vector>

#include "base/container.h"
#include "base/shape.h"
#include "base/small_vector.h"
#include "base/string_store.h"
#include "memory/buffer.h"

namespace anymps {

struct Tensor {
  TensorDesc desc;
  BufferRef buffer;
  size_t offset = 0;  // bytes from the start of the buffer to element [0, …, 0]

  StringStorePtr strings;  // owns the elements of a string tensor
  Container container = Container::kTensor;
  // Of a sequence, its tensors; of an optional, at most one; of maps, keys and values. Null: an
  // optional that holds nothing.
  std::shared_ptr<const std::vector<Tensor>> items;

  void* data() const { return static_cast<char*>(buffer->data()) + offset; }
};

// The bytes that a tensor reaches, to find those that share memory. Of a list there is one for each
// tensor in it, of a tensor without elements none.
struct Reach {
  const char *begin, *end;
  size_t owner;
};
void add_reach(const Tensor& tensor, size_t owner, SmallVector<Reach, 16>& to);

}  // namespace anymps
