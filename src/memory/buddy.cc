// SPDX-License-Identifier: Apache-2.0
#include "memory/buddy.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace anymps {

Buddy::Buddy(size_t slab_bytes, size_t min_block) : min_block_(min_block) {
  require(
      std::has_single_bit(slab_bytes) && std::has_single_bit(min_block) && min_block <= slab_bytes,
      "[memory] slab of {} bytes with blocks of {}: both must be powers of two", slab_bytes,
      min_block);
  size_t leaves = slab_bytes / min_block;
  top_order_ = std::countr_zero(leaves);
  tree_.resize(2 * leaves);
  for (int order = top_order_; order >= 0; --order) {
    size_t first = leaves >> order;
    std::fill_n(tree_.begin() + static_cast<std::ptrdiff_t>(first), first,
                static_cast<uint8_t>(order + 1));
  }
}

int Buddy::order_of(size_t bytes, size_t min_block) {
  return bytes <= min_block ? 0 : static_cast<int>(std::bit_width((bytes - 1) / min_block));
}

std::optional<size_t> Buddy::allocate(int order) {
  if (largest_order() < order) return std::nullopt;
  size_t node = 1;
  for (int at = top_order_; at > order; --at) {
    size_t left = 2 * node, right = left + 1;
    // Of the children that have room take the tighter one: it keeps large blocks whole.
    bool go_right = tree_[left] <= order || (tree_[right] > order && tree_[right] < tree_[left]);
    node = go_right ? right : left;
  }
  // The nodes below keep saying "free", which is what they are when this block comes back.
  tree_[node] = 0;
  update_ancestors(node, order);
  size_t first_of_order = size_t{1} << (top_order_ - order);
  return (node - first_of_order) * (min_block_ << order);
}

void Buddy::free(size_t offset, int order) {
  size_t first_of_order = size_t{1} << (top_order_ - order);
  size_t node = first_of_order + offset / (min_block_ << order);
  tree_[node] = static_cast<uint8_t>(order + 1);
  update_ancestors(node, order);
}

void Buddy::update_ancestors(size_t node, int order) {
  while (node > 1) {
    uint8_t own = tree_[node], sibling = tree_[node ^ 1];
    bool coalesce = own == order + 1 && sibling == order + 1;
    uint8_t value = coalesce ? static_cast<uint8_t>(order + 2) : std::max(own, sibling);
    node /= 2;
    ++order;
    if (tree_[node] == value) return;
    tree_[node] = value;
  }
}

}  // namespace anymps
