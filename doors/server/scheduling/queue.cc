// SPDX-License-Identifier: Apache-2.0
// A level is a deque that loses its front only; one that leaves from the middle leaves an empty
// entry. So a deadline finds its request by a number, without a list node for each request.
#include "server/scheduling/queue.h"

#include <algorithm>
#include <functional>

#include "server/core/clock.h"

namespace anymps::server {

RequestQueue::RequestQueue(const inference::ModelDynamicBatching& config) {
  const size_t count = std::max<uint64_t>(1, config.priority_levels());
  levels_ = std::vector<Level>(count);
  for (size_t i = 0; i < count; ++i) {
    const auto own = config.priority_queue_policy().find(i + 1);
    const bool has_own =
        config.priority_levels() > 0 && own != config.priority_queue_policy().end();
    levels_[i].policy = has_own ? own->second : config.default_queue_policy();
    has_timeouts_ |= levels_[i].policy.default_timeout_microseconds() > 0 ||
                     levels_[i].policy.allow_timeout_override();
  }
  if (config.default_priority_level() >= 1 && config.default_priority_level() <= count)
    default_level_ = config.default_priority_level() - 1;
}

bool RequestQueue::push(RequestPtr& request, int64_t rows, uint64_t now) {
  const bool named = request->priority >= 1 && request->priority <= levels_.size();
  const size_t index = named ? request->priority - 1 : default_level_;
  Level& level = levels_[index];
  if (level.policy.max_queue_size() > 0 && level.size >= level.policy.max_queue_size())
    return false;

  // A request may shorten the level's timeout, not lengthen it.
  uint64_t timeout = level.policy.default_timeout_microseconds();
  if (level.policy.allow_timeout_override() && request->timeout_us > 0)
    timeout = timeout == 0 ? request->timeout_us : std::min(timeout, request->timeout_us);
  const uint64_t deadline = timeout == 0 ? 0 : after_us(now, timeout);

  level.waiting.push_back({std::move(request), rows, deadline, false});
  ++level.size, ++size_;
  rows_ += rows;
  if (deadline == 0) return true;
  if (deadlines_.size() > 2 * size_ + 64) {
    std::erase_if(deadlines_, [&](const Deadline& one) { return !find(one); });
    std::make_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
  }
  deadlines_.push_back({deadline, level.first + level.waiting.size() - 1, index});
  std::push_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
  return true;
}

RequestQueue::Entry* RequestQueue::find(const Deadline& deadline) {
  Level& level = levels_[deadline.level];
  if (deadline.number < level.first) return nullptr;
  Entry& entry = level.waiting[deadline.number - level.first];
  return entry.request ? &entry : nullptr;
}

RequestPtr RequestQueue::leave(Level& level, Entry& entry) {
  --level.size, --size_;
  rows_ -= entry.rows;
  return std::move(entry.request);
}

void RequestQueue::trim(Level& level) {
  for (; !level.waiting.empty() && !level.waiting.front().request; ++level.first)
    level.waiting.pop_front();
  while (!level.delayed.empty() && !level.delayed.front().request) level.delayed.pop_front();
}

RequestQueue::Entry RequestQueue::pop() {
  for (Level& level : levels_) {
    for (std::deque<Entry>* entries : {&level.waiting, &level.delayed}) {
      if (entries->empty()) continue;  // the front of a level that is not empty is a request
      Entry& entry = entries->front();
      Entry result{nullptr, entry.rows, entry.deadline, entry.cancelled};
      result.request = leave(level, entry);
      trim(level);
      return result;
    }
  }
  return {};
}

void RequestQueue::remove_cancelled(std::vector<RequestPtr>& out) {
  for (Level& level : levels_) {
    for (std::deque<Entry>* entries : {&level.waiting, &level.delayed})
      for (Entry& entry : *entries)
        if (entry.request && entry.request->is_cancelled()) out.push_back(leave(level, entry));
    trim(level);
  }
}

void RequestQueue::clear(std::vector<RequestPtr>& out) {
  while (!empty()) out.push_back(pop().request);
  deadlines_.clear();
}

uint64_t RequestQueue::next_deadline() {
  while (!deadlines_.empty() && !find(deadlines_.front())) {
    std::pop_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
    deadlines_.pop_back();
  }
  return deadlines_.empty() ? 0 : deadlines_.front().time;
}

void RequestQueue::expire(uint64_t now, std::vector<RequestPtr>& rejected) {
  while (!deadlines_.empty() && deadlines_.front().time <= now) {
    const Deadline due = deadlines_.front();
    std::pop_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
    deadlines_.pop_back();
    Entry* entry = find(due);
    if (!entry) continue;
    Level& level = levels_[due.level];
    if (level.policy.timeout_action() == inference::ModelQueuePolicy::DELAY) {
      level.delayed.push_back({std::move(entry->request), entry->rows, 0, entry->cancelled});
    } else {
      rejected.push_back(leave(level, *entry));
    }
    trim(level);
  }
}

}  // namespace anymps::server
