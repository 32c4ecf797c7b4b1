// SPDX-License-Identifier: Apache-2.0
// Memory that lives as long as a call.
#pragma once

#include "memory/allocator.h"
#include "runtime/tensor_view.h"

namespace anymps {

class Temporaries {
 public:
  explicit Temporaries(Allocator& allocator) : allocator_(allocator) {}
  ~Temporaries() {
    for (const Block& block : blocks_) allocator_.free(block);
  }
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;

  void* take(size_t bytes) {
    blocks_.push_back(allocator_.allocate_block(bytes));
    return blocks_.back().data;
  }
  // Room for the elements of a tensor, in its strides; where its first one is.
  TensorView like(const TensorDesc& desc) {
    const ByteRange reach = byte_range(desc);
    char* start = static_cast<char*>(take(reach.end - reach.begin));
    return view_of(desc, start - reach.begin);
  }

 private:
  Allocator& allocator_;
  SmallVector<Block, 4> blocks_;
};

}  // namespace anymps
