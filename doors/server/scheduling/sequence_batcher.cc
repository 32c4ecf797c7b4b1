// SPDX-License-Identifier: Apache-2.0
// One thread an instance ("lane") forms the batches of its sequences and runs them; one more ends
// sequences that nobody continues.
#include "server/scheduling/sequence_batcher.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "server/core/clock.h"
#include "server/observation/statistics.h"
#include "server/scheduling/ordered_responses.h"
#include "server/scheduling/rate_limiter.h"
#include "server/scheduling/refusal.h"
#include "server/scheduling/sequence_rows.h"
#include "server/scheduling/sequence_slots.h"

namespace anymps::server {
namespace {

constexpr uint64_t kDefaultIdleUs = 1'000'000;
constexpr char kSequenceTimeout[] = "timeout of the corresponding sequence has been expired";

}  // namespace

class SequenceBatcher::Core {
 public:
  Core(const inference::ModelConfig& config, std::vector<std::unique_ptr<Instance>> instances,
       RateLimiter& limiter, ModelMetrics& metrics, const serving::ModelDir& model_dir)
      : rows_(config, model_dir),
        idle_us_(config.sequence_batching().max_sequence_idle_microseconds()),
        instances_(std::move(instances)),
        registration_(limiter, instances_),
        limiter_(limiter),
        metrics_(metrics),
        slots_(instances_.size(), rows_.slots_each()),
        lanes_(instances_.size()) {
    if (idle_us_ == 0) idle_us_ = kDefaultIdleUs;
    if (config.sequence_batching().oldest().preserve_ordering())
      for (Lane& lane : lanes_) lane.ordered = std::make_shared<OrderedResponses>();
  }

  void enqueue(RequestPtr request);
  void work(size_t lane);
  void watch_deadlines();
  void stop();
  void unregister() { registration_.release(); }  // once no thread waits for a permit

  size_t lanes() const { return instances_.size(); }
  size_t queued() const { return queued_; }
  size_t in_flight() const { return in_flight_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Lane {
    std::condition_variable wake;
    std::deque<SequencePtr> line;  // "oldest": sequences that have a request to run
    bool changed = false;
    std::shared_ptr<OrderedResponses> ordered;
  };
  using Plan = SequenceRows::Plan;

  void came(const SequencePtr& sequence, bool wake);
  Plan plan(size_t lane) const;
  void drop_cancelled(size_t lane, std::vector<RequestPtr>& out);
  void end(const SequencePtr& sequence, std::vector<RequestPtr>& rest);
  std::vector<RequestPtr> take(size_t lane, const Plan& plan);
  void finish(const Plan& plan, const std::vector<bool>& ends);
  void watch(uint64_t deadline);
  void left(size_t count);
  void refuse(std::vector<RequestPtr>& requests, Code code, const std::string& message);

  const SequenceRows rows_;
  uint64_t idle_us_;
  std::vector<std::unique_ptr<Instance>> instances_;
  Registration registration_;
  RateLimiter& limiter_;
  ModelMetrics& metrics_;

  std::mutex mutex_;
  SequenceSlots slots_;
  std::vector<Lane> lanes_;
  std::condition_variable deadline_;
  uint64_t watched_ = UINT64_MAX;  // when the deadline thread will wake
  bool stopping_ = false;
  std::atomic<size_t> queued_{0}, in_flight_{0};
};

void SequenceBatcher::Core::enqueue(RequestPtr request) {
  const uint64_t now = now_ns();
  request->times.queued = now;
  Code code = Code::kInvalidArgument;
  std::string message = rows_.refusal(*request);
  if (message.empty()) {
    Lock lock(mutex_);
    SequencePtr sequence = slots_.find(request->sequence);
    if (stopping_) {
      code = Code::kUnavailable;
      message = kStopping;
    } else if (!sequence && !request->sequence_start) {
      message = "inference request for sequence " + sequence_text(request->sequence) +
                " to model '" + request->model +
                "' must specify the START flag on the first request of the sequence";
    } else {
      // A start within a sequence that did not end begins anew in its place.
      if (!sequence) sequence = slots_.begin(request->sequence);
      if (request->sequence_end) slots_.forget(*sequence);
      if (sequence->lane == SIZE_MAX && request->timeout_us > 0) {
        sequence->expires = std::min(sequence->expires, after_us(now, request->timeout_us));
        watch(sequence->expires);
      }
      sequence->requests.push_back(std::move(request));
      ++queued_, ++in_flight_;
      metrics_.queued(1);
      if (sequence->lane != SIZE_MAX) came(sequence, true);
      return;
    }
  }
  server::refuse(metrics_, std::move(request), code, message);
}

// The sequence has a slot and a request to run.
void SequenceBatcher::Core::came(const SequencePtr& sequence, bool wake) {
  Lane& lane = lanes_[sequence->lane];
  if (rows_.oldest() && !sequence->running && !sequence->candidate) {
    sequence->candidate = true;
    lane.line.push_back(sequence);
  }
  lane.changed = true;
  if (wake) lane.wake.notify_one();
}

SequenceRows::Plan SequenceBatcher::Core::plan(size_t lane) const {
  return rows_.oldest() ? rows_.plan_oldest(lanes_[lane].line)
                        : rows_.plan_direct(slots_.lane(lane));
}

// A sequence ends when one of its requests is given up: what comes after it would be wrong.
void SequenceBatcher::Core::drop_cancelled(size_t lane, std::vector<RequestPtr>& out) {
  for (size_t i = 0; i < slots_.lane(lane).size(); ++i) {
    // The one that takes its slot may be cancelled as well.
    for (SequencePtr one = slots_.lane(lane)[i];
         one && !one->requests.empty() && one->requests.front()->is_cancelled();
         one = slots_.lane(lane)[i])
      end(one, out);
  }
}

// Frees its slot for the next one of the backlog.
void SequenceBatcher::Core::end(const SequencePtr& sequence, std::vector<RequestPtr>& rest) {
  for (RequestPtr& request : sequence->requests) rest.push_back(std::move(request));
  left(sequence->requests.size());
  sequence->requests.clear();
  if (sequence->candidate) {
    sequence->candidate = false;
    std::erase(lanes_[sequence->lane].line, sequence);
  }
  if (const SequencePtr next = slots_.release(sequence)) came(next, true);
}

std::vector<RequestPtr> SequenceBatcher::Core::take(size_t lane, const Plan& plan) {
  const uint64_t now = now_ns();
  std::vector<RequestPtr> batch;
  batch.reserve(plan.rows.size());
  size_t count = 0;
  for (const SequencePtr& sequence : plan.rows) {
    if (!sequence) {
      batch.push_back(nullptr);
      continue;
    }
    ++count;
    batch.push_back(std::move(sequence->requests.front()));
    sequence->requests.pop_front();
    sequence->running = true;
    batch.back()->times.dequeued = now;
    if (lanes_[lane].ordered) lanes_[lane].ordered->join(*batch.back());
    if (!sequence->candidate) continue;
    sequence->candidate = false;
    lanes_[lane].line.pop_front();  // they are its first ones
  }
  left(count);
  return batch;
}

void SequenceBatcher::Core::finish(const Plan& plan, const std::vector<bool>& ends) {
  const uint64_t now = now_ns();
  std::vector<RequestPtr> none;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const SequencePtr& sequence = plan.rows[i];
    if (!sequence) continue;
    sequence->running = false;
    sequence->idle_since = now;
    if (ends[i])
      end(sequence, none);
    else if (!sequence->requests.empty())
      came(sequence, false);
    else
      watch(after_us(now, idle_us_));
  }
}

void SequenceBatcher::Core::work(size_t index) {
  uint64_t executions = 0;
  std::optional<RateLimiter::Permit> permit;
  std::vector<RequestPtr> cancelled;
  Lane& lane = lanes_[index];
  Instance& instance = *instances_[index];
  Lock lock(mutex_);
  while (!stopping_) {
    drop_cancelled(index, cancelled);
    lane.changed = false;
    const Plan next = plan(index);
    if (next.rows.empty() && cancelled.empty()) {
      if (permit) permit->unused(), permit.reset();
      const auto woken = [&] { return stopping_ || lane.changed; };
      if (next.wait_until == 0)
        lane.wake.wait(lock, woken);
      else
        lane.wake.wait_until(lock, time_point(next.wait_until), woken);
      continue;
    }
    if (!cancelled.empty() || (limiter_.enabled() && !permit)) {
      const bool permitted = next.rows.empty() || !limiter_.enabled() || permit;
      lock.unlock();
      refuse(cancelled, Code::kCancelled, kCancelled);
      if (!permitted) permit.emplace(limiter_, instance.group(), executions);
      lock.lock();
      continue;
    }
    std::vector<RequestPtr> batch = take(index, next);
    lock.unlock();
    rows_.prepare(next, batch);
    std::vector<bool> ends;
    size_t count = 0;
    for (const RequestPtr& request : batch) {
      ends.push_back(!request->filler && request->sequence_end);
      count += request->filler ? 0 : 1;
    }
    instance.run(std::move(batch));
    permit.reset();
    in_flight_ -= count;
    lock.lock();
    if (!stopping_) finish(next, ends);
  }
  if (permit) permit->unused();
}

void SequenceBatcher::Core::watch(uint64_t deadline) {
  if (deadline >= watched_) return;
  watched_ = deadline;
  deadline_.notify_one();
}

// Ends sequences that nothing came for, and those that waited too long for a slot.
void SequenceBatcher::Core::watch_deadlines() {
  std::vector<RequestPtr> late, none;
  Lock lock(mutex_);
  while (!stopping_) {
    const uint64_t now = now_ns();
    uint64_t next = UINT64_MAX;
    std::vector<SequencePtr> over;
    for (const SequencePtr& one : slots_.backlog()) {
      if (one->expires <= now)
        over.push_back(one);
      else
        next = std::min(next, one->expires);
    }
    for (const SequencePtr& one : over) end(one, late);
    over.clear();
    for (size_t lane = 0; lane < slots_.lanes(); ++lane) {
      for (const SequencePtr& one : slots_.lane(lane)) {
        if (!one || one->running || !one->requests.empty()) continue;
        const uint64_t due = after_us(one->idle_since, idle_us_);
        if (due <= now)
          over.push_back(one);
        else
          next = std::min(next, due);
      }
    }
    for (const SequencePtr& one : over) end(one, none);
    if (!late.empty()) {
      lock.unlock();
      refuse(late, Code::kUnavailable, kSequenceTimeout);
      lock.lock();
      continue;
    }
    watched_ = next;
    const auto earlier = [&] { return stopping_ || watched_ < next; };
    if (next == UINT64_MAX)
      deadline_.wait(lock, earlier);
    else
      deadline_.wait_until(lock, time_point(next), earlier);
  }
}

void SequenceBatcher::Core::left(size_t count) {
  queued_ -= count;
  metrics_.queued(-static_cast<int64_t>(count));
}

void SequenceBatcher::Core::refuse(std::vector<RequestPtr>& requests, Code code,
                                   const std::string& message) {
  for (RequestPtr& request : requests) {
    server::refuse(metrics_, std::move(request), code, message);
    --in_flight_;
  }
  requests.clear();
}

void SequenceBatcher::Core::stop() {
  std::vector<RequestPtr> rest;
  {
    Lock lock(mutex_);
    stopping_ = true;
    slots_.clear(rest);
    left(rest.size());
    for (Lane& lane : lanes_) {
      lane.line.clear();
      lane.wake.notify_all();
    }
    deadline_.notify_all();
  }
  refuse(rest, Code::kUnavailable, kStopping);
}

SequenceBatcher::SequenceBatcher(const inference::ModelConfig& config,
                                 std::vector<std::unique_ptr<Instance>> instances,
                                 RateLimiter& limiter, ModelMetrics& metrics,
                                 const serving::ModelDir& model_dir)
    : core_(std::make_shared<Core>(config, std::move(instances), limiter, metrics, model_dir)) {
  for (size_t lane = 0; lane < core_->lanes(); ++lane)
    threads_.start([core = core_, lane] { core->work(lane); });
  threads_.start([core = core_] { core->watch_deadlines(); });
}

SequenceBatcher::~SequenceBatcher() {
  core_->stop();
  threads_.join();
  core_->unregister();
}

// The answer may come, and end this scheduler, before the call is over.
void SequenceBatcher::enqueue(RequestPtr request) {
  const std::shared_ptr<Core> core = core_;
  core->enqueue(std::move(request));
}
size_t SequenceBatcher::queued() const { return core_->queued(); }
size_t SequenceBatcher::in_flight() const { return core_->in_flight(); }

}  // namespace anymps::server
