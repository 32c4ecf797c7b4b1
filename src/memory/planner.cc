// SPDX-License-Identifier: Apache-2.0
#include "memory/planner.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/error.h"

namespace anymps {

namespace {

// What gets one offset: a tensor, or all tensors of an alias group.
struct Item {
  size_t size = 0;
  size_t alignment = 1;
  size_t first_use = 0;
  size_t last_use = 0;

  size_t duration() const { return last_use - first_use; }
};

struct Items {
  std::vector<Item> items;
  std::vector<size_t> of_tensor;
};

struct Placement {
  std::vector<size_t> offsets;
  size_t arena_size = 0;
};

void check(const std::vector<PlannedTensor>& tensors) {
  size_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PlannedTensor& tensor = tensors[i];
    require(std::has_single_bit(tensor.alignment),
            "[planner] tensor {}: alignment {} is not a power of two", i, tensor.alignment);
    require(tensor.first_use <= tensor.last_use,
            "[planner] tensor {}: first use {} is after its last use {}", i, tensor.first_use,
            tensor.last_use);
    // With this sum in range, no offset can overflow.
    if (__builtin_add_overflow(total, tensor.size, &total) ||
        __builtin_add_overflow(total, tensor.alignment - 1, &total))
      fail(Code::kOutOfMemory, "[planner] tensor {}: {} bytes are too many to plan", i,
           tensor.size);
  }
}

Items merge_aliases(const std::vector<PlannedTensor>& tensors) {
  Items result;
  std::unordered_map<int, size_t> item_of_group;
  for (const PlannedTensor& tensor : tensors) {
    size_t index = result.items.size();
    if (tensor.alias_group >= 0)
      index = item_of_group.try_emplace(tensor.alias_group, index).first->second;
    result.of_tensor.push_back(index);
    if (index == result.items.size()) {
      result.items.push_back({tensor.size, tensor.alignment, tensor.first_use, tensor.last_use});
      continue;
    }
    Item& item = result.items[index];
    item.size = std::max(item.size, tensor.size);
    item.alignment = std::max(item.alignment, tensor.alignment);
    item.first_use = std::min(item.first_use, tensor.first_use);
    item.last_use = std::max(item.last_use, tensor.last_use);
  }
  return result;
}

size_t most_live_bytes(const std::vector<Item>& items) {
  std::vector<size_t> by_start(items.size());
  std::iota(by_start.begin(), by_start.end(), size_t{0});
  std::vector<size_t> by_end = by_start;
  std::sort(by_start.begin(), by_start.end(),
            [&](size_t a, size_t b) { return items[a].first_use < items[b].first_use; });
  std::sort(by_end.begin(), by_end.end(),
            [&](size_t a, size_t b) { return items[a].last_use < items[b].last_use; });
  size_t live = 0, most = 0;
  auto ended = by_end.begin();
  for (size_t index : by_start) {
    for (; items[*ended].last_use < items[index].first_use; ++ended) live -= items[*ended].size;
    live += items[index].size;
    most = std::max(most, live);
  }
  return most;
}

// Places the items in the given order, each into the tightest gap between those placed before that
// live at the same time, or behind them all.
Placement place(const std::vector<Item>& items, const std::vector<size_t>& order) {
  struct Placed {
    size_t offset, end, first_use, last_use;
  };
  std::vector<Placed> placed;  // by offset
  placed.reserve(items.size());
  Placement result{std::vector<size_t>(items.size()), 0};
  for (size_t index : order) {
    const Item& item = items[index];
    if (item.size == 0) continue;
    auto align = [&](size_t offset) {
      return (offset + item.alignment - 1) & ~(item.alignment - 1);
    };
    size_t best = 0, best_gap = std::numeric_limits<size_t>::max();
    size_t free_from = 0;
    for (const Placed& other : placed) {
      if (other.last_use < item.first_use || other.first_use > item.last_use) continue;
      if (other.offset > free_from) {
        size_t start = align(free_from), gap = other.offset - free_from;
        if (start <= other.offset && other.offset - start >= item.size && gap < best_gap) {
          best = start;
          best_gap = gap;
        }
      }
      free_from = std::max(free_from, other.end);
    }
    if (best_gap == std::numeric_limits<size_t>::max()) best = align(free_from);
    Placed entry{best, best + item.size, item.first_use, item.last_use};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
        entry);
    result.offsets[index] = best;
    result.arena_size = std::max(result.arena_size, entry.end);
  }
  return result;
}

// Places the items in the order of their first use, each into the smallest block that is free then:
// what an allocator would do at run time. The result is somewhat larger than that of place(), and
// the time grows with the number of items, not with its square.
class Sweep {
 public:
  explicit Sweep(size_t alignment) : alignment_(alignment) {}

  Placement run(const std::vector<Item>& items) {
    std::vector<size_t> by_start(items.size());
    std::iota(by_start.begin(), by_start.end(), size_t{0});
    std::stable_sort(by_start.begin(), by_start.end(), [&](size_t a, size_t b) {
      if (items[a].first_use != items[b].first_use) return items[a].first_use < items[b].first_use;
      return items[a].size > items[b].size;
    });
    Placement result{std::vector<size_t>(items.size()), 0};
    std::multimap<size_t, size_t> live;  // items by their last use
    for (const size_t index : by_start) {
      if (items[index].size == 0) continue;
      for (; !live.empty() && live.begin()->first < items[index].first_use;
           live.erase(live.begin())) {
        const size_t ended = live.begin()->second;
        give_back(result.offsets[ended], rounded(items[ended].size));
      }
      result.offsets[index] = take(rounded(items[index].size));
      live.emplace(items[index].last_use, index);
    }
    result.arena_size = end_;
    return result;
  }

 private:
  size_t rounded(size_t bytes) const { return (bytes + alignment_ - 1) & ~(alignment_ - 1); }

  size_t take(size_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      size_t offset = end_;
      if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == end_) {
        offset = free_.rbegin()->first;  // the arena grows by what the last block lacks
        forget(std::prev(free_.end()));
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *fit;
    forget(free_.find(offset));
    if (size > bytes) keep(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(size_t offset, size_t bytes) {
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = forget(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        forget(before);
      }
    }
    keep(offset, bytes);
  }

  void keep(size_t offset, size_t bytes) {
    free_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  std::map<size_t, size_t>::iterator forget(std::map<size_t, size_t>::iterator block) {
    by_size_.erase({block->second, block->first});
    return free_.erase(block);
  }

  size_t alignment_, end_ = 0;
  std::map<size_t, size_t> free_;                // offset, size
  std::set<std::pair<size_t, size_t>> by_size_;  // size, offset
};

// place() looks at all pairs of items: more than these take too long.
constexpr size_t kMostSearched = 8192;

// No order is best for all graphs; each of these wins on some.
const std::function<double(const Item&)> kOrders[] = {
    [](const Item& item) { return static_cast<double>(item.size); },
    [](const Item& item) { return static_cast<double>(item.duration()); },
    [](const Item& item) {
      return static_cast<double>(item.size) * (static_cast<double>(item.duration()) + 1);
    },
};

}  // namespace

MemoryPlan plan_memory(const std::vector<PlannedTensor>& tensors) {
  check(tensors);
  auto [items, of_tensor] = merge_aliases(tensors);
  MemoryPlan plan;
  plan.lower_bound = most_live_bytes(items);
  for (const Item& item : items)
    plan.arena_alignment = std::max(plan.arena_alignment, item.alignment);

  Placement best;
  best.arena_size = std::numeric_limits<size_t>::max();
  if (items.size() > kMostSearched) best = Sweep(plan.arena_alignment).run(items);
  for (const auto& weight : kOrders) {
    if (items.size() > kMostSearched) break;
    std::vector<size_t> order(items.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&, &items = items](size_t a, size_t b) {
      return weight(items[a]) > weight(items[b]);
    });
    Placement placement = place(items, order);
    if (placement.arena_size < best.arena_size) best = std::move(placement);
    if (best.arena_size == plan.lower_bound) break;
  }

  plan.arena_size = best.arena_size;
  for (size_t item : of_tensor) plan.offsets.push_back(best.offsets[item]);
  return plan;
}

}  // namespace anymps
