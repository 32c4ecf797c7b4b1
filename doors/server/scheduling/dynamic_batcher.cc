// SPDX-License-Identifier: Apache-2.0
// A free thread sleeps, or it gathers: it waits until a batch that has begun is worth running. One
// thread gathers at a time, and a request wakes it only if the batch is complete with it. Sleepers
// wait for a semaphore: who comes out of a condition variable has its mutex marked as contended,
// and giving that up is a system call more for each request.
#include "server/scheduling/dynamic_batcher.h"

#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "server/core/clock.h"
#include "server/core/validate.h"
#include "server/observation/statistics.h"
#include "server/scheduling/batch_plan.h"
#include "server/scheduling/ordered_responses.h"
#include "server/scheduling/queue.h"
#include "server/scheduling/rate_limiter.h"
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

}  // namespace

class DynamicBatcher::Core {
 public:
  Core(const inference::ModelConfig& config, std::vector<std::unique_ptr<Instance>> instances,
       RateLimiter& limiter, ModelMetrics& metrics)
      : rules_(config, config.has_dynamic_batching(),
               config.dynamic_batching().preferred_batch_size(),
               config.dynamic_batching().max_queue_delay_microseconds()),
        queue_(config.dynamic_batching()),
        has_timeouts_(queue_.has_timeouts()),
        instances_(std::move(instances)),
        registration_(limiter, instances_),
        limiter_(limiter),
        metrics_(metrics) {
    if (config.dynamic_batching().preserve_ordering())
      ordered_ = std::make_shared<OrderedResponses>();
  }

  void enqueue(RequestPtr request);
  void work(Instance& instance);
  void watch_deadlines();
  void stop();
  void unregister() { registration_.release(); }  // once no thread waits for a permit

  bool has_timeouts() const { return has_timeouts_; }
  const std::vector<std::unique_ptr<Instance>>& instances() const { return instances_; }
  size_t queued() const { return queued_; }
  size_t in_flight() const {
    return std::max<size_t>(in_flight_, ordered_ ? ordered_->pending() : 0);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void wake_for(const Request& request, size_t rows, Lock lock);
  BatchPlan::Decision plan();
  void sleep(Lock& lock);
  void gather(Lock& lock, const BatchPlan::Decision& decision);
  void left(size_t count);
  void refuse(std::vector<RequestPtr>& requests, Code code, const char* message);

  const BatchRules rules_;
  std::mutex mutex_;
  RequestQueue queue_;
  const bool has_timeouts_;
  std::vector<std::unique_ptr<Instance>> instances_;
  Registration registration_;
  RateLimiter& limiter_;
  ModelMetrics& metrics_;
  std::shared_ptr<OrderedResponses> ordered_;

  Semaphore work_;  // released once for each of woken_
  std::condition_variable gathered_, deadline_;
  size_t sleeping_ = 0, woken_ = 0;  // threads that sleep; how many of them were told to wake
  bool gathering_ = false, complete_ = false;
  size_t wake_rows_ = 0;
  uint64_t watched_ = UINT64_MAX;  // when the deadline thread will wake
  bool stopping_ = false;
  std::atomic<size_t> queued_{0}, in_flight_{0};
};

void DynamicBatcher::Core::enqueue(RequestPtr request) {
  const uint64_t now = now_ns();
  request->times.queued = now;
  const size_t rows = rules_.rows(*request);
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
    left(cancelled.size());
    accepted = !cancelled.empty() && queue_.push(request, rows, now);
  }
  if (accepted) {
    ++queued_, ++in_flight_;
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
void DynamicBatcher::Core::wake_for(const Request& request, size_t rows, Lock lock) {
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
  } else if (woken_ < sleeping_) {
    ++woken_;
    wake_sleeper = true;
  }
  if (has_timeouts_) {
    const uint64_t next = queue_.next_deadline();
    if (next != 0 && next < watched_) watched_ = next, wake_watch = true;
  }
  lock.unlock();
  if (wake_gatherer) gathered_.notify_one();
  if (wake_sleeper) work_.release();
  if (wake_watch) deadline_.notify_one();
}

BatchPlan::Decision DynamicBatcher::Core::plan() {
  BatchPlan plan(rules_);
  queue_.visit([&](RequestQueue::Entry& entry) {
    entry.cancelled = entry.cancelled || entry.request->is_cancelled();
    if (!entry.cancelled) return plan.add(*entry.request, entry.rows);
    plan.skip();
    return true;
  });
  return plan.decide(now_ns());
}

void DynamicBatcher::Core::sleep(Lock& lock) {
  ++sleeping_;
  lock.unlock();
  work_.acquire();
  lock.lock();
  --sleeping_, --woken_;
}

void DynamicBatcher::Core::gather(Lock& lock, const BatchPlan::Decision& decision) {
  gathering_ = true;
  complete_ = false;
  wake_rows_ = decision.wake_rows;
  gathered_.wait_until(lock, time_point(decision.wait_until),
                       [&] { return stopping_ || complete_; });
  gathering_ = false;
}

void DynamicBatcher::Core::work(Instance& instance) {
  uint64_t executions = 0;
  std::optional<RateLimiter::Permit> permit;
  std::vector<RequestPtr> late, cancelled, batch;
  Lock lock(mutex_);
  while (!stopping_) {
    if (has_timeouts_) queue_.expire(now_ns(), late);
    const BatchPlan::Decision decision = queue_.empty() ? BatchPlan::Decision{} : plan();
    if (decision.count == 0 && late.empty()) {
      if (permit) permit->unused(), permit.reset();
      if (queue_.empty() || gathering_)
        sleep(lock);
      else
        gather(lock, decision);
      continue;
    }
    if (decision.count > 0 && limiter_.enabled() && !permit) {
      // What is run is decided when it may run: the batch grows while it waits.
      left(late.size());
      const bool other = !gathering_ && woken_ < sleeping_;  // it may have what this one waits for
      if (other) ++woken_;
      lock.unlock();
      if (other) work_.release();
      refuse(late, Code::kUnavailable, kTimeout);
      permit.emplace(limiter_, instance.group(), executions);
      lock.lock();
      continue;
    }
    const uint64_t now = now_ns();
    for (size_t i = 0; i < decision.count; ++i) {
      RequestQueue::Entry entry = queue_.pop();
      entry.request->times.dequeued = now;
      (entry.cancelled ? cancelled : batch).push_back(std::move(entry.request));
    }
    left(late.size() + cancelled.size() + batch.size());
    if (ordered_)
      for (const RequestPtr& request : batch) ordered_->join(*request);
    const bool more = !queue_.empty() && !gathering_ && woken_ < sleeping_;
    if (more) ++woken_;
    lock.unlock();
    if (more) work_.release();
    refuse(late, Code::kUnavailable, kTimeout);
    refuse(cancelled, Code::kCancelled, kCancelled);
    if (!batch.empty()) {
      const size_t count = batch.size();
      instance.run(std::exchange(batch, {}));
      in_flight_ -= count;
    }
    permit.reset();
    lock.lock();
  }
  if (permit) permit->unused();
}

void DynamicBatcher::Core::watch_deadlines() {
  std::vector<RequestPtr> late;
  Lock lock(mutex_);
  while (!stopping_) {
    const uint64_t next = queue_.next_deadline();
    watched_ = next == 0 ? UINT64_MAX : next;
    const auto earlier = [&, planned = watched_] { return stopping_ || watched_ < planned; };
    if (next == 0)
      deadline_.wait(lock, earlier);
    else
      deadline_.wait_until(lock, time_point(next), earlier);
    if (stopping_) return;
    queue_.expire(now_ns(), late);
    left(late.size());
    lock.unlock();
    refuse(late, Code::kUnavailable, kTimeout);
    lock.lock();
  }
}

void DynamicBatcher::Core::left(size_t count) {
  queued_ -= count;
  metrics_.queued(-static_cast<int64_t>(count));
}

void DynamicBatcher::Core::refuse(std::vector<RequestPtr>& requests, Code code,
                                  const char* message) {
  for (RequestPtr& request : requests) {
    server::refuse(metrics_, std::move(request), code, message);
    --in_flight_;
  }
  requests.clear();
}

void DynamicBatcher::Core::stop() {
  std::vector<RequestPtr> rest;
  size_t asleep = 0;
  {
    Lock lock(mutex_);
    stopping_ = true;
    asleep = sleeping_ - std::exchange(woken_, sleeping_);
    queue_.clear(rest);
    left(rest.size());
  }
  for (; asleep > 0; --asleep) work_.release();
  gathered_.notify_all();
  deadline_.notify_all();
  refuse(rest, Code::kUnavailable, kStopping);
}

DynamicBatcher::DynamicBatcher(const inference::ModelConfig& config,
                               std::vector<std::unique_ptr<Instance>> instances,
                               RateLimiter& limiter, ModelMetrics& metrics)
    : core_(std::make_shared<Core>(config, std::move(instances), limiter, metrics)) {
  for (const std::unique_ptr<Instance>& instance : core_->instances())
    threads_.start([core = core_, &instance = *instance] { core->work(instance); });
  if (core_->has_timeouts()) threads_.start([core = core_] { core->watch_deadlines(); });
}

DynamicBatcher::~DynamicBatcher() {
  core_->stop();
  threads_.join();
  core_->unregister();
}

// The answer may come, and end this scheduler, before the call is over.
void DynamicBatcher::enqueue(RequestPtr request) {
  const std::shared_ptr<Core> core = core_;
  core->enqueue(std::move(request));
}
size_t DynamicBatcher::queued() const { return core_->queued(); }
size_t DynamicBatcher::in_flight() const { return core_->in_flight(); }

}  // namespace anymps::server
