// SPDX-License-Identifier: Apache-2.0
#include "server/scheduling/batcher.h"

#include <iterator>
#include <thread>
#include <utility>

#include "server/core/clock.h"
#include "server/observation/statistics.h"
#include "server/scheduling/refusal.h"

namespace anymps::server {
namespace {

// The instances of a batcher, as the rate limiter knows them.
class Registration {
 public:
  explicit Registration(const Batcher& batcher) : batcher_(batcher) {}
  ~Registration() {
    while (count_ > 0) batcher_.limiter().remove(batcher_.instances()[--count_]->group());
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  void add_all() {
    for (; count_ < batcher_.instances().size(); ++count_)
      batcher_.limiter().add(batcher_.instances()[count_]->group());
  }

 private:
  const Batcher& batcher_;
  size_t count_ = 0;
};

// The last answer of a model that is being unloaded may well end its scheduler, on a thread of that
// very scheduler: such a thread is left to end by itself. So each thread keeps the batcher alive.
class RunningBatcher final : public Scheduler {
 public:
  explicit RunningBatcher(std::shared_ptr<Batcher> batcher)
      : batcher_(std::move(batcher)), registration_(*batcher_) {
    registration_.add_all();
    try {
      for (size_t i = 0; i < batcher_->instances().size(); ++i)
        threads_.emplace_back([batcher = batcher_, i] { batcher->work(i); });
      if (batcher_->has_deadlines())
        threads_.emplace_back([batcher = batcher_] { batcher->watch_deadlines(); });
    } catch (...) {
      end();
      throw;
    }
  }
  ~RunningBatcher() override { end(); }

  // The answer may come, and end this scheduler, before the call is over.
  void enqueue(RequestPtr request) override {
    const std::shared_ptr<Batcher> batcher = batcher_;
    request->times.queued = now_ns();
    batcher->enqueue(std::move(request));
  }

 private:
  void end() {
    batcher_->stop();
    for (std::thread& thread : threads_) {
      if (thread.get_id() == std::this_thread::get_id())
        thread.detach();
      else
        thread.join();
    }
  }

  const std::shared_ptr<Batcher> batcher_;
  Registration registration_;  // ends when no thread waits for a permit
  std::vector<std::thread> threads_;
};

}  // namespace

void Turn::run(std::vector<RequestPtr> batch) {
  instance_.run(std::move(batch));
  permit_.reset();
}

void Turn::give_back() {
  if (permit_) permit_->unused();
  permit_.reset();
}

Batcher::Batcher(std::vector<std::unique_ptr<Instance>> instances, RateLimiter& limiter,
                 ModelMetrics& metrics)
    : metrics_(metrics), instances_(std::move(instances)), limiter_(limiter) {}

void Batcher::refuse(std::vector<RequestPtr>& requests, Code code, const char* message) {
  for (RequestPtr& request : requests) server::refuse(metrics_, std::move(request), code, message);
  requests.clear();
}

bool Batcher::is_next(uint64_t deadline) {
  if (deadline >= watched_) return false;
  watched_ = deadline;
  return true;
}

void Batcher::watch_deadlines() {
  std::vector<RequestPtr> late;
  Lock lock(mutex_);
  while (!stopping_) {
    const uint64_t next = expire(late);
    if (!late.empty()) {
      lock.unlock();
      refuse(late, Code::kUnavailable, late_message());
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

void Batcher::stop() {
  std::vector<RequestPtr> rest;
  {
    Lock lock(mutex_);
    stopping_ = true;
    clear(rest);
    metrics_.queued(-std::ssize(rest));
    deadline_.notify_all();
  }
  refuse(rest, Code::kUnavailable, kStopping);
}

std::unique_ptr<Scheduler> start_batcher(std::shared_ptr<Batcher> batcher) {
  return std::make_unique<RunningBatcher>(std::move(batcher));
}

}  // namespace anymps::server
