// SPDX-License-Identifier: Apache-2.0
// How requests of a model come together into batches and reach its instances. A scheduler answers
// every request that it is given, with an error if need be; it never blocks the thread that
// enqueues.
#pragma once

#include <memory>
#include <vector>

#include "model_config.pb.h"
#include "server/core/request.h"
#include "serving/reach.h"

namespace anymps::server {

class RateLimiter;   // scheduling/rate_limiter.h: resources that instances of all models share
class ModelMetrics;  // observation/statistics.h: counters and durations of a model version

// An instance of a model: runs one batch at a time and answers its requests.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual const inference::ModelInstanceGroup& group() const = 0;
  // When it returns, every request is answered and counted in the statistics (`filler` ones are
  // not counted). It does not throw.
  virtual void run(std::vector<RequestPtr> batch) = 0;
};

// Sets times.queued and times.dequeued, and counts what it answers itself as failures. It may end
// on one of its own threads, within a call of respond().
class Scheduler {
 public:
  virtual ~Scheduler() = default;  // answers what is still queued with kUnavailable
  virtual void enqueue(RequestPtr request) = 0;
};

// The scheduler that the configuration asks for: dynamic batching, sequence batching (direct,
// oldest), or one request after the other. One thread per instance. Ensembles have their own
// scheduler (scheduling/ensemble.h). `model_dir` has the files of initial states of sequences, in
// initial_state/. Throws kInvalidArgument with Triton's wording if the configuration is wrong.
std::unique_ptr<Scheduler> make_scheduler(const inference::ModelConfig& config,
                                          std::vector<std::unique_ptr<Instance>> instances,
                                          RateLimiter& limiter, ModelMetrics& metrics,
                                          const serving::ModelDir& model_dir = {});

}  // namespace anymps::server
