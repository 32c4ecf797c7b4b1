// SPDX-License-Identifier: Apache-2.0
// Dynamic batching, and the default scheduler (one request after the other): the instances' threads
// take from one queue. A thread that is free forms its batch by itself and runs it; there is no
// thread in between.
#pragma once

#include <memory>
#include <vector>

#include "server/scheduling/scheduler.h"
#include "server/scheduling/worker_threads.h"

namespace anymps::server {

class DynamicBatcher final : public Scheduler {
 public:
  DynamicBatcher(const inference::ModelConfig& config,
                 std::vector<std::unique_ptr<Instance>> instances, RateLimiter& limiter,
                 ModelMetrics& metrics);
  ~DynamicBatcher() override;
  void enqueue(RequestPtr request) override;
  size_t queued() const override;
  size_t in_flight() const override;

 private:
  class Core;
  std::shared_ptr<Core> core_;
  WorkerThreads threads_;
};

}  // namespace anymps::server
