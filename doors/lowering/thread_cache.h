// SPDX-License-Identifier: Apache-2.0
// What a thread has prepared, up to a bound. Threads share nothing here, so a call takes no lock
// and a forked child finds nothing locked. When it is full, one that was not used since the last
// look at it goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lowering/key.h"

namespace anymps::lowering {

template <class T>
class ThreadCache {
 public:
  static ThreadCache& of_this_thread() {
    thread_local ThreadCache cache;
    return cache;
  }

  T* find(const Key& key, uint64_t hash) const {
    for (Entry* entry = chain(hash).get(); entry; entry = entry->next.get()) {
      if (entry->hash != hash || !std::ranges::equal(entry->words, key.words())) continue;
      entry->used = true;
      return &entry->value;
    }
    return nullptr;
  }

  T& keep(const Key& key, uint64_t hash, T value) {
    if (size_ == kCapacity) forget_one();
    std::unique_ptr<Entry>& first = chain(hash);
    first = std::make_unique<Entry>(Entry{
        hash, {key.words().begin(), key.words().end()}, std::move(value), true, std::move(first)});
    ++size_;
    return first->value;
  }

 private:
  static constexpr size_t kCapacity = 2048;  // and chains
  struct Entry {
    uint64_t hash;
    std::vector<uint64_t> words;
    T value;
    bool used;
    std::unique_ptr<Entry> next;
  };

  std::unique_ptr<Entry>& chain(uint64_t hash) { return chains_[hash % kCapacity]; }
  const std::unique_ptr<Entry>& chain(uint64_t hash) const { return chains_[hash % kCapacity]; }

  // Goes round the chains from where it stopped the last time.
  void forget_one() {
    for (;; hand_ = (hand_ + 1) % kCapacity) {
      for (std::unique_ptr<Entry>* at = &chains_[hand_]; *at; at = &(*at)->next) {
        if (std::exchange((*at)->used, false)) continue;
        *at = std::exchange((*at)->next, nullptr);
        --size_;
        return;
      }
    }
  }

  std::vector<std::unique_ptr<Entry>> chains_{kCapacity};
  size_t size_ = 0, hand_ = 0;
};

}  // namespace anymps::lowering
