// SPDX-License-Identifier: Apache-2.0
// Answers that were given before, found by the content of the request: model, version, inputs,
// outputs. Bounded by bytes; the least recently used goes first. Two requests are the same only if
// their bytes are, not just their hash.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/core/request.h"

namespace anymps::server {

class ResponseCache {
 public:
  explicit ResponseCache(uint64_t capacity_bytes);  // 0: off
  bool enabled() const { return capacity_ > 0; }

  // The key holds the request's content; "" if it cannot be cached (sequences, outputs in shared
  // memory).
  std::string key(const Request& request) const;
  // The answer without an id: it has that of the request that is asked now. Its elements are shared
  // with the cache and must not be written to.
  std::optional<Response> find(const std::string& key);
  // Keeps a copy, unless it is an error or larger than the cache.
  void insert(const std::string& key, const Response& response);
  void forget_model(const std::string& model);  // when it is unloaded or reloaded

  struct Usage {
    uint64_t bytes = 0, capacity = 0, entries = 0, hits = 0, misses = 0, evictions = 0;
  };
  Usage usage() const;

 private:
  struct Entry {
    std::string key, model;
    Response response;
    uint64_t bytes = 0;
  };
  // Seeded afresh in each process, so that nobody can choose inputs that collide.
  struct Hash {
    uint64_t seed;
    size_t operator()(std::string_view text) const;
  };
  void drop(std::list<Entry>::iterator entry);

  uint64_t capacity_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator, Hash> by_key_;
  Usage usage_;
};

}  // namespace anymps::server
