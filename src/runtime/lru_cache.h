// SPDX-License-Identifier: Apache-2.0
// A cache, bounded by the weight of its entries, that forgets what was used longest ago. Values are
// shared pointers: an entry that is thrown out lives on with whoever is using it.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fork.h"

namespace anymps {

struct CacheStats {
  size_t size = 0, capacity = 0;
  uint64_t hits = 0, misses = 0, evictions = 0;
};

template <typename Key, typename T, typename Hash = std::hash<Key>>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  std::shared_ptr<T> find(const Key& key) {
    std::lock_guard lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) {
      ++misses_;
      return nullptr;
    }
    ++hits_;
    items_.splice(items_.begin(), items_, it->second);
    return it->second->value;
  }

  // Keeps what is there already when two threads made the same value; returns what is kept.
  // `weight` is how much of the capacity it takes.
  std::shared_ptr<T> insert(const Key& key, std::shared_ptr<T> value, size_t weight = 1) {
    Items gone;  // outlives the lock: what ends may take its time
    std::lock_guard lock(mutex_);
    auto it = index_.find(key);
    if (it != index_.end()) return it->second->value;
    if (capacity_ == 0) return value;
    items_.push_front({key, value, weight});
    index_[key] = items_.begin();
    weight_ += weight;
    shrink(gone);
    return value;
  }

  void set_capacity(size_t capacity) {
    Items gone;
    std::lock_guard lock(mutex_);
    capacity_ = capacity;
    shrink(gone);
  }

  void clear() {
    Items gone;
    std::lock_guard lock(mutex_);
    gone.swap(items_);
    index_.clear();
    weight_ = 0;
  }

  // All that is kept, longest unused first.
  std::vector<std::pair<Key, std::shared_ptr<T>>> items() const {
    std::lock_guard lock(mutex_);
    std::vector<std::pair<Key, std::shared_ptr<T>>> list;
    for (auto it = items_.rbegin(); it != items_.rend(); ++it)
      list.emplace_back(it->key, it->value);
    return list;
  }

  CacheStats stats() const {
    std::lock_guard lock(mutex_);
    return {items_.size(), capacity_, hits_, misses_, evictions_};
  }

 private:
  struct Item {
    Key key;
    std::shared_ptr<T> value;
    size_t weight;
  };
  using Items = std::list<Item>;

  void shrink(Items& gone) {
    while (weight_ > capacity_) {
      index_.erase(items_.back().key);
      weight_ -= items_.back().weight;
      gone.splice(gone.begin(), items_, std::prev(items_.end()));
      ++evictions_;
    }
  }

  mutable ForkMutex mutex_;
  size_t capacity_, weight_ = 0;
  Items items_;
  std::unordered_map<Key, typename Items::iterator, Hash> index_;
  uint64_t hits_ = 0, misses_ = 0, evictions_ = 0;
};

}  // namespace anymps
