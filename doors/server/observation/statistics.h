// SPDX-License-Identifier: Apache-2.0
// Counters and durations of one version of a model: what the statistics extension, the Prometheus
// page and the status page show. Written by schedulers, instances, ensembles and the response
// cache.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "grpc_service.pb.h"
#include "server/core/request.h"

namespace anymps::server {

class ModelMetrics {
 public:
  // A request that was answered: its times tell how long it queued and computed. `batch_size`: rows
  // of this request.
  void success(const Timestamps& times, uint64_t batch_size);
  void failure(const Timestamps& times, Code code);
  // One execution of `batch_size` rows.
  void execution(uint64_t batch_size, uint64_t input_ns, uint64_t infer_ns, uint64_t output_ns);
  void cache_hit(const Timestamps& times, uint64_t lookup_ns, uint64_t batch_size);
  void cache_miss(uint64_t lookup_and_insert_ns);
  void queued(int64_t change) { pending_ += change; }

  int64_t pending() const { return pending_; }
  inference::ModelStatistics read() const;  // without name and version
  // Milliseconds of the last answered requests, for the status page: quantiles in [0, 1].
  std::array<double, 3> latency_ms(const std::array<double, 3>& quantiles) const;
  std::map<Code, uint64_t> failures() const;

 private:
  struct Duration {
    uint64_t count = 0, ns = 0;
    void add(uint64_t duration) { ++count, ns += duration; }
  };
  struct Batch {
    Duration input, infer, output;
  };
  mutable std::mutex mutex_;
  Duration success_, fail_, queue_, input_, infer_, output_, hit_, miss_;
  std::map<uint64_t, Batch> batches_;
  std::map<Code, uint64_t> failures_;
  uint64_t inferences_ = 0, executions_ = 0, last_inference_ms_ = 0;
  std::array<float, 1024> recent_ms_{};
  size_t recent_ = 0;
  std::atomic<int64_t> pending_{0};
};

}  // namespace anymps::server
