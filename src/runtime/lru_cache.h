// SPDX-License-Identifier: Apache-2.0
// A bounded cache that forgets what was used longest ago. Values are shared pointers: an entry that
// is thrown out lives on with whoever is using it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

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
    return it->second->second;
  }

  // Keeps what is there already when two threads made the same value; returns what is kept.
  std::shared_ptr<T> insert(const Key& key, std::shared_ptr<T> value) {
    std::lock_guard lock(mutex_);
    auto it = index_.find(key);
    if (it != index_.end()) return it->second->second;
    if (capacity_ == 0) return value;
    items_.emplace_front(key, value);
    index_[key] = items_.begin();
    shrink();
    return value;
  }

  void set_capacity(size_t capacity) {
    std::lock_guard lock(mutex_);
    capacity_ = capacity;
    shrink();
  }

  void clear() {
    std::lock_guard lock(mutex_);
    items_.clear();
    index_.clear();
  }

  CacheStats stats() const {
    std::lock_guard lock(mutex_);
    return {items_.size(), capacity_, hits_, misses_, evictions_};
  }

  template <typename Fn>
  void for_each(Fn&& fn) const {
    std::lock_guard lock(mutex_);
    for (const auto& [key, value] : items_) fn(key, *value);
  }

 private:
  using Items = std::list<std::pair<Key, std::shared_ptr<T>>>;

  void shrink() {
    while (items_.size() > capacity_) {
      index_.erase(items_.back().first);
      items_.pop_back();
      ++evictions_;
    }
  }

  mutable std::mutex mutex_;
  size_t capacity_;
  Items items_;
  std::unordered_map<Key, typename Items::iterator, Hash> index_;
  uint64_t hits_ = 0, misses_ = 0, evictions_ = 0;
};

}  // namespace anymps
