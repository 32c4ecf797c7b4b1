// SPDX-License-Identifier: Apache-2.0
// One thread per instance ("lane") forms the batches of its sequences and runs them; one more ends
// sequences that nobody continues.
#include "server/scheduling/sequence_batcher.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <string>
#include <utility>

#include "server/core/clock.h"
#include "server/observation/statistics.h"
#include "server/scheduling/ordered_responses.h"
#include "server/scheduling/refusal.h"
#include "server/scheduling/sequence_rows.h"
#include "server/scheduling/sequence_slots.h"

namespace anymps::server {
namespace {

constexpr uint64_t kDefaultIdleUs = 1'000'000;

class SequenceBatcher final : public Batcher {
 public:
  SequenceBatcher(const inference::ModelConfig& config,
                  std::vector<std::unique_ptr<Instance>> instances, RateLimiter& limiter,
                  ModelMetrics& metrics, const serving::ModelDir& model_dir)
      : Batcher(std::move(instances), limiter, metrics),
        rows_(config, model_dir),
        idle_us_(config.sequence_batching().max_sequence_idle_microseconds()),
        slots_(this->instances().size(), rows_.slots_each()),
        lanes_(this->instances().size()) {
    if (idle_us_ == 0) idle_us_ = kDefaultIdleUs;
    if (config.sequence_batching().oldest().preserve_ordering())
      for (Lane& lane : lanes_) lane.ordered = std::make_shared<OrderedResponses>();
  }

  void enqueue(RequestPtr request) override;
  void work(size_t index) override;

 private:
  struct Lane {
    std::condition_variable wake;
    std::deque<SequencePtr> line;  // "oldest": sequences that have a request to run
    bool changed = false;
    std::shared_ptr<OrderedResponses> ordered;
  };
  using Plan = SequenceRows::Plan;

  uint64_t expire(std::vector<RequestPtr>& late) override;
  const char* late_message() const override {
    return "timeout of the corresponding sequence has been expired";
  }
  void clear(std::vector<RequestPtr>& rest) override;

  void ready(const SequencePtr& sequence, bool wake);
  Plan plan(size_t lane) const;
  void drop_cancelled(size_t lane, std::vector<RequestPtr>& out);
  void end(const SequencePtr& sequence, std::vector<RequestPtr>& rest);
  std::vector<RequestPtr> take(size_t lane, const Plan& plan);
  void finish(const Plan& plan, const std::vector<bool>& ends);
  void watch(uint64_t deadline);

  const SequenceRows rows_;
  uint64_t idle_us_;
  SequenceSlots slots_;
  std::vector<Lane> lanes_;
};

void SequenceBatcher::enqueue(RequestPtr request) {
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
      // A start within a sequence that did not end restarts it in its place.
      if (!sequence) sequence = slots_.begin(request->sequence);
      if (request->sequence_end) slots_.forget(*sequence);
      if (sequence->lane == SIZE_MAX && request->timeout_us > 0) {
        sequence->expires =
            std::min(sequence->expires, after_us(request->times.queued, request->timeout_us));
        watch(sequence->expires);
      }
      sequence->requests.push_back(std::move(request));
      metrics_.queued(1);
      if (sequence->lane != SIZE_MAX) ready(sequence, true);
      return;
    }
  }
  server::refuse(metrics_, std::move(request), code, message);
}

// The sequence has a slot and a request to run.
void SequenceBatcher::ready(const SequencePtr& sequence, bool wake) {
  Lane& lane = lanes_[sequence->lane];
  if (rows_.oldest() && !sequence->running && !sequence->candidate) {
    sequence->candidate = true;
    lane.line.push_back(sequence);
  }
  lane.changed = true;
  if (wake) lane.wake.notify_one();
}

SequenceRows::Plan SequenceBatcher::plan(size_t lane) const {
  return rows_.oldest() ? rows_.plan_oldest(lanes_[lane].line)
                        : rows_.plan_direct(slots_.lane(lane));
}

// A sequence ends when one of its requests is given up: what comes after it would be wrong.
void SequenceBatcher::drop_cancelled(size_t lane, std::vector<RequestPtr>& out) {
  for (size_t i = 0; i < slots_.lane(lane).size(); ++i) {
    // The one that takes its slot may be cancelled as well.
    for (SequencePtr one = slots_.lane(lane)[i];
         one && !one->requests.empty() && one->requests.front()->is_cancelled();
         one = slots_.lane(lane)[i])
      end(one, out);
  }
}

// Frees its slot for the next one of the backlog.
void SequenceBatcher::end(const SequencePtr& sequence, std::vector<RequestPtr>& rest) {
  for (RequestPtr& request : sequence->requests) rest.push_back(std::move(request));
  metrics_.queued(-std::ssize(sequence->requests));
  sequence->requests.clear();
  if (sequence->candidate) {
    sequence->candidate = false;
    std::erase(lanes_[sequence->lane].line, sequence);
  }
  if (const SequencePtr next = slots_.release(sequence)) ready(next, true);
}

std::vector<RequestPtr> SequenceBatcher::take(size_t lane, const Plan& plan) {
  const uint64_t now = now_ns();
  std::vector<RequestPtr> batch;
  batch.reserve(plan.rows.size());
  int64_t count = 0;
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
  metrics_.queued(-count);
  return batch;
}

void SequenceBatcher::finish(const Plan& plan, const std::vector<bool>& ends) {
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
      ready(sequence, false);
    else
      watch(after_us(now, idle_us_));
  }
}

void SequenceBatcher::work(size_t index) {
  Turn turn(*instances()[index], limiter());
  std::vector<RequestPtr> cancelled;
  Lane& lane = lanes_[index];
  Lock lock(mutex_);
  while (!stopping_) {
    drop_cancelled(index, cancelled);
    lane.changed = false;
    const Plan next = plan(index);
    if (next.rows.empty() && cancelled.empty()) {
      turn.give_back();
      const auto woken = [&] { return stopping_ || lane.changed; };
      if (next.wait_until == 0)
        lane.wake.wait(lock, woken);
      else
        lane.wake.wait_until(lock, time_point(next.wait_until), woken);
      continue;
    }
    if (!cancelled.empty() || !turn.has_come()) {
      lock.unlock();
      refuse(cancelled, Code::kCancelled, kCancelled);
      if (!next.rows.empty() && !turn.has_come()) turn.wait();
      lock.lock();
      continue;
    }
    std::vector<RequestPtr> batch = take(index, next);
    lock.unlock();
    rows_.prepare(next, batch);
    std::vector<bool> ends;
    for (const RequestPtr& request : batch)
      ends.push_back(!request->filler && request->sequence_end);
    turn.run(std::move(batch));
    lock.lock();
    if (!stopping_) finish(next, ends);
  }
}

void SequenceBatcher::watch(uint64_t deadline) {
  if (is_next(deadline)) deadline_.notify_one();
}

// Ends sequences that nothing came for, and those that waited too long for a slot.
uint64_t SequenceBatcher::expire(std::vector<RequestPtr>& late) {
  const uint64_t now = now_ns();
  uint64_t next = UINT64_MAX;
  std::vector<SequencePtr> over;
  const auto look = [&](const SequencePtr& sequence, uint64_t due) {
    if (due <= now)
      over.push_back(sequence);
    else
      next = std::min(next, due);
  };
  for (const SequencePtr& one : slots_.backlog()) look(one, one->expires);
  for (const SequencePtr& one : over) end(one, late);
  over.clear();
  for (size_t lane = 0; lane < slots_.lanes(); ++lane)
    for (const SequencePtr& one : slots_.lane(lane))
      if (one && !one->running && one->requests.empty())
        look(one, after_us(one->idle_since, idle_us_));
  for (const SequencePtr& one : over) end(one, late);  // they have no requests
  return next;
}

void SequenceBatcher::clear(std::vector<RequestPtr>& rest) {
  slots_.clear(rest);
  for (Lane& lane : lanes_) {
    lane.line.clear();
    lane.wake.notify_all();
  }
}

}  // namespace

std::shared_ptr<Batcher> make_sequence_batcher(const inference::ModelConfig& config,
                                               std::vector<std::unique_ptr<Instance>> instances,
                                               RateLimiter& limiter, ModelMetrics& metrics,
                                               const serving::ModelDir& model_dir) {
  return std::make_shared<SequenceBatcher>(config, std::move(instances), limiter, metrics,
                                           model_dir);
}

}  // namespace anymps::server
