// SPDX-License-Identifier: Apache-2.0
// A free thread sleeps, or it gathers: it waits until a batch that has begun is worth running. One
// thread gathers at a time, and a request wakes it only if the batch is complete with it. Sleepers
// wait for a semaphore: a thread that wakes from a condition variable marks its mutex as contended,
// and giving that up is one more system call for each request.
#include "server/scheduling/dynamic_batcher.h"

#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <utility>

#include "server/core/clock.h"
#include "server/observation/statistics.h"
#include "server/scheduling/batch_plan.h"
#include "server/scheduling/ordered_responses.h"
#include "server/scheduling/queue.h"
#include "server/scheduling/refusal.h"

namespace anymps::server {
namespace {

// std::counting_semaphore of gcc 12 can miss a release.
class Semaphore {
 public:
  Semaphore() { sem_init(&semaphore_, 0, 0); }
  ~Semaphore() { sem_destroy(&semaphore_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  void release() { sem_post(&semaphore_); }
  void acquire() {
    while (sem_wait(&semaphore_) != 0 && errno == EINTR) {
    }
  }

 private:
  sem_t semaphore_;
};

class DynamicBatcher final : public Batcher {
 public:
  DynamicBatcher(const inference::ModelConfig& config,
                 std::vector<std::unique_ptr<Instance>> instances, RateLimiter& limiter,
                 ModelMetrics& metrics)
      : Batcher(std::move(instances), limiter, metrics),
        rules_(config, config.has_dynamic_batching(),
               config.dynamic_batching().preferred_batch_size(),
               config.dynamic_batching().max_queue_delay_microseconds()),
        queue_(config.dynamic_batching()),
        has_timeouts_(queue_.has_timeouts()) {
    if (config.dynamic_batching().preserve_ordering())
      ordered_ = std::make_shared<OrderedResponses>();
  }

  void enqueue(RequestPtr request) override;
  void work(size_t index) override;
  bool has_deadlines() const override { return has_timeouts_; }

 private:
  uint64_t expire(std::vector<RequestPtr>& late) override;
  const char* late_message() const override { return kTimeout; }
  void clear(std::vector<RequestPtr>& rest) override;

  void wake_for(const Request& request, int64_t rows, Lock lock);
  BatchPlan::Decision plan();
  void sleep(Lock& lock);
  void gather(Lock& lock, const BatchPlan::Decision& decision);
  bool wake_another();

  const BatchRules rules_;
  RequestQueue queue_;
  const bool has_timeouts_;
  std::shared_ptr<OrderedResponses> ordered_;

  Semaphore work_;  // released once for each of woken_
  std::condition_variable gathered_;
  size_t sleeping_ = 0, woken_ = 0;  // threads that sleep; how many of them were told to wake
  bool gathering_ = false, complete_ = false;
  int64_t wake_rows_ = 0;
};

void DynamicBatcher::enqueue(RequestPtr request) {
  const uint64_t now = request->times.queued;
  const int64_t rows = rules_.rows(*request);
  const Request& added = *request;
  std::vector<RequestPtr> cancelled;
  Lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    return server::refuse(metrics_, std::move(request), Code::kUnavailable, kStopping);
  }
  bool accepted = queue_.push(request, rows, now);
  if (!accepted) {
    queue_.remove_cancelled(cancelled);
    metrics_.queued(-std::ssize(cancelled));
    accepted = !cancelled.empty() && queue_.push(request, rows, now);
  }
  if (accepted) {
    metrics_.queued(1);
    wake_for(added, rows, std::move(lock));
  } else {
    lock.unlock();
    const std::string message = request_prefix(*request) + kQueueFull;
    server::refuse(metrics_, std::move(request), Code::kUnavailable, message);
  }
  refuse(cancelled, Code::kCancelled, kCancelled);
}

// The lock is given up before anyone is woken, so that the woken one need not wait for it.
void DynamicBatcher::wake_for(const Request& request, int64_t rows, Lock lock) {
  bool wake_gatherer = false, wake_sleeper = false, wake_watch = false;
  if (gathering_) {
    wake_gatherer = !complete_ && queue_.rows() >= wake_rows_;
    // A request that cannot join the batch completes it as well.
    if (!wake_gatherer && !complete_ && queue_.rows() > rows)
      queue_.visit([&](RequestQueue::Entry& front) {
        wake_gatherer = !rules_.together(*front.request, request);
        return false;
      });
    complete_ |= wake_gatherer;
  } else {
    wake_sleeper = wake_another();
  }
  if (has_timeouts_) {
    const uint64_t next = queue_.next_deadline();
    wake_watch = next != 0 && is_next(next);
  }
  lock.unlock();
  if (wake_gatherer) gathered_.notify_one();
  if (wake_sleeper) work_.release();
  if (wake_watch) deadline_.notify_one();
}

BatchPlan::Decision DynamicBatcher::plan() {
  BatchPlan plan(rules_);
  queue_.visit([&](RequestQueue::Entry& entry) {
    entry.cancelled = entry.cancelled || entry.request->is_cancelled();
    if (!entry.cancelled) return plan.add(*entry.request, entry.rows);
    plan.skip();
    return true;
  });
  return plan.decide(now_ns());
}

// Whether one that sleeps is to be woken, with `work_`.
bool DynamicBatcher::wake_another() {
  if (gathering_ || woken_ >= sleeping_) return false;
  ++woken_;
  return true;
}

void DynamicBatcher::sleep(Lock& lock) {
  ++sleeping_;
  lock.unlock();
  work_.acquire();
  lock.lock();
  --sleeping_, --woken_;
}

void DynamicBatcher::gather(Lock& lock, const BatchPlan::Decision& decision) {
  gathering_ = true;
  complete_ = false;
  wake_rows_ = decision.wake_rows;
  gathered_.wait_until(lock, time_point(decision.wait_until),
                       [&] { return stopping_ || complete_; });
  gathering_ = false;
}

void DynamicBatcher::work(size_t index) {
  Turn turn(*instances()[index], limiter());
  std::vector<RequestPtr> late, cancelled, batch;
  Lock lock(mutex_);
  while (!stopping_) {
    if (has_timeouts_) queue_.expire(now_ns(), late);
    const BatchPlan::Decision decision = queue_.empty() ? BatchPlan::Decision{} : plan();
    if (decision.count == 0 && late.empty()) {
      turn.give_back();
      if (queue_.empty() || gathering_)
        sleep(lock);
      else
        gather(lock, decision);
      continue;
    }
    if (decision.count > 0 && !turn.has_come()) {
      // What is run is decided when it may run: the batch grows while it waits.
      metrics_.queued(-std::ssize(late));
      const bool other = wake_another();  // it may have what this one waits for
      lock.unlock();
      if (other) work_.release();
      refuse(late, Code::kUnavailable, kTimeout);
      turn.wait();
      lock.lock();
      continue;
    }
    const uint64_t now = now_ns();
    for (int64_t i = 0; i < decision.count; ++i) {
      RequestQueue::Entry entry = queue_.pop();
      entry.request->times.dequeued = now;
      (entry.cancelled ? cancelled : batch).push_back(std::move(entry.request));
    }
    metrics_.queued(-std::ssize(late) - std::ssize(cancelled) - std::ssize(batch));
    if (ordered_)
      for (const RequestPtr& request : batch) ordered_->join(*request);
    const bool more = !queue_.empty() && wake_another();
    lock.unlock();
    if (more) work_.release();
    refuse(late, Code::kUnavailable, kTimeout);
    refuse(cancelled, Code::kCancelled, kCancelled);
    if (batch.empty())
      turn.give_back();
    else
      turn.run(std::exchange(batch, {}));
    lock.lock();
  }
}

uint64_t DynamicBatcher::expire(std::vector<RequestPtr>& late) {
  queue_.expire(now_ns(), late);
  metrics_.queued(-std::ssize(late));
  const uint64_t next = queue_.next_deadline();
  return next == 0 ? UINT64_MAX : next;
}

void DynamicBatcher::clear(std::vector<RequestPtr>& rest) {
  queue_.clear(rest);
  for (; woken_ < sleeping_; ++woken_) work_.release();
  gathered_.notify_all();
}

}  // namespace

std::shared_ptr<Batcher> make_dynamic_batcher(const inference::ModelConfig& config,
                                              std::vector<std::unique_ptr<Instance>> instances,
                                              RateLimiter& limiter, ModelMetrics& metrics) {
  return std::make_shared<DynamicBatcher>(config, std::move(instances), limiter, metrics);
}

}  // namespace anymps::server
