// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a dynamic batcher: priority levels, each with a limit on its length and
// what happens to those that wait too long. Its owner holds a lock around every call.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model_config.pb.h"
#include "server/core/request.h"

namespace anymps::server {

class RequestQueue {
 public:
  struct Entry {
    RequestPtr request;  // null once it left
    int64_t rows = 1;
    uint64_t deadline = 0;   // 0: none
    bool cancelled = false;  // as the visitor saw it
  };

  // One level without limits unless the configuration says otherwise.
  explicit RequestQueue(const inference::ModelDynamicBatching& config = {});

  // False if its level is full; the request is then left as it is.
  bool push(RequestPtr& request, int64_t rows, uint64_t now);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t rows() const { return rows_; }

  // Shows entries in the order in which they will be served, until `see` returns false.
  template <class See>
  void visit(See&& see) {
    for (Level& level : levels_)
      for (std::deque<Entry>* entries : {&level.waiting, &level.delayed})
        for (Entry& entry : *entries)
          if (entry.request && !see(entry)) return;
  }
  Entry pop();  // the first one
  void remove_cancelled(std::vector<RequestPtr>& out);
  void clear(std::vector<RequestPtr>& out);

  // Whether any request can have a deadline.
  bool has_timeouts() const { return has_timeouts_; }
  uint64_t next_deadline();  // 0: none
  // Those past their deadline go behind the others of their level, or to `rejected`.
  void expire(uint64_t now, std::vector<RequestPtr>& rejected);

 private:
  struct Level {
    inference::ModelQueuePolicy policy;
    std::deque<Entry> waiting, delayed;
    uint64_t first = 0;  // the number of waiting.front(): entries are numbered as they come
    size_t size = 0;
  };
  struct Deadline {
    uint64_t time, number;
    size_t level;
    bool operator>(const Deadline& other) const { return time > other.time; }
  };
  Entry* find(const Deadline& deadline);
  RequestPtr leave(Level& level, Entry& entry);
  static void trim(Level& level);

  std::vector<Level> levels_;  // the highest priority first
  size_t default_level_ = 0, size_ = 0;
  int64_t rows_ = 0;
  bool has_timeouts_ = false;
  std::vector<Deadline> deadlines_;  // a heap, the earliest on top; some of requests that left
};

}  // namespace anymps::server
