// SPDX-License-Identifier: Apache-2.0
// What the batchers have in common: a thread for each instance, one that looks after deadlines, the
// requests that wait and run, permits of the rate limiter, and the end of it all. Which requests go
// into a batch, and when, is theirs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "server/scheduling/rate_limiter.h"
#include "server/scheduling/scheduler.h"

namespace anymps::server {

// An instance, and its turn to run: with a permit, where the rate limiter gives them.
class Turn {
 public:
  Turn(Instance& instance, RateLimiter& limiter) : instance_(instance), limiter_(limiter) {}
  ~Turn() { give_back(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool has_come() const { return permit_ || !limiter_.enabled(); }
  void wait() { permit_.emplace(limiter_, instance_.group(), executions_); }
  void run(std::vector<RequestPtr> batch);  // ends the turn
  void give_back();                         // there is nothing to run

 private:
  Instance& instance_;
  RateLimiter& limiter_;
  uint64_t executions_ = 0;
  std::optional<RateLimiter::Permit> permit_;
};

class Batcher {
 public:
  Batcher(std::vector<std::unique_ptr<Instance>> instances, RateLimiter& limiter,
          ModelMetrics& metrics);
  virtual ~Batcher() = default;

  // times.queued is set.
  virtual void enqueue(RequestPtr request) = 0;
  const std::vector<std::unique_ptr<Instance>>& instances() const { return instances_; }
  RateLimiter& limiter() const { return limiter_; }

  // What the threads run, until the batcher stops.
  virtual void work(size_t instance) = 0;
  virtual bool has_deadlines() const { return true; }
  void watch_deadlines();

  void stop();

 protected:
  using Lock = std::unique_lock<std::mutex>;

  // With the lock held: takes out what has waited too long and tells when the next one will have;
  // UINT64_MAX: none.
  virtual uint64_t expire(std::vector<RequestPtr>& late) = 0;
  virtual const char* late_message() const = 0;
  // With the lock held, when it stops: takes out all that waits, and wakes the instances' threads.
  virtual void clear(std::vector<RequestPtr>& rest) = 0;

  // Answers requests that will not run.
  void refuse(std::vector<RequestPtr>& requests, Code code, const char* message);
  // With the lock held. True: this deadline is the next one, and `deadline_` is to be notified.
  bool is_next(uint64_t deadline);

  ModelMetrics& metrics_;  // `queued` tells it of each that begins or ends to wait
  std::mutex mutex_;
  bool stopping_ = false;
  std::condition_variable deadline_;

 private:
  std::vector<std::unique_ptr<Instance>> instances_;
  RateLimiter& limiter_;
  uint64_t watched_ = UINT64_MAX;  // when the deadline thread will wake
};

// Makes the instances known to the rate limiter and starts the threads.
std::unique_ptr<Scheduler> start_batcher(std::shared_ptr<Batcher> batcher);

}  // namespace anymps::server
