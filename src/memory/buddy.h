// SPDX-License-Identifier: Apache-2.0
// Buddy allocator over one slab. It deals in offsets and keeps its books outside the slab, so it
// works for memory that the host cannot see.
//
// The books are a complete binary tree over the slab's smallest blocks. A node stands for the block
// of all leaves below it, and holds the order of the largest free block in there plus one, or 0 for
// none. To allocate is to walk down, to free is to walk up: both take one step per order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace anymps {

class Buddy {
 public:
  // Both are powers of two. A block of order k has min_block << k bytes.
  Buddy(size_t slab_bytes, size_t min_block);

  // The order of the smallest block that holds `bytes` (at most the slab's size).
  static int order_of(size_t bytes, size_t min_block);

  // The offset of a free block, a multiple of the block's size.
  std::optional<size_t> allocate(int order);
  // Takes what allocate() gave, with the same order.
  void free(size_t offset, int order);

  // The order of the largest free block, or -1 when the slab is full.
  int largest_order() const { return tree_[1] - 1; }
  bool is_free() const { return largest_order() == top_order_; }

 private:
  size_t min_block_;
  int top_order_;
  std::vector<uint8_t> tree_;  // the root is 1, the children of n are 2n and 2n + 1

  void update_ancestors(size_t node, int order);
};

}  // namespace anymps
