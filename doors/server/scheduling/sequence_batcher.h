// SPDX-License-Identifier: Apache-2.0
// Sequence batching: all requests of a sequence go to the same instance, one after the other. Each
// instance has slots for so many sequences; the others wait in a backlog until a slot is free.
#pragma once

#include <memory>
#include <vector>

#include "server/scheduling/scheduler.h"
#include "server/scheduling/worker_threads.h"
#include "serving/reach.h"

namespace anymps::server {

class SequenceBatcher final : public Scheduler {
 public:
  SequenceBatcher(const inference::ModelConfig& config,
                  std::vector<std::unique_ptr<Instance>> instances, RateLimiter& limiter,
                  ModelMetrics& metrics, const serving::ModelDir& model_dir);
  ~SequenceBatcher() override;
  void enqueue(RequestPtr request) override;
  size_t queued() const override;
  size_t in_flight() const override;

 private:
  class Core;
  std::shared_ptr<Core> core_;
  WorkerThreads threads_;
};

}  // namespace anymps::server
