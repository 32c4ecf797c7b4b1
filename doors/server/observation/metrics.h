// SPDX-License-Identifier: Apache-2.0
// The Prometheus page, with Triton's names (nv_inference_request_success,
// nv_inference_queue_duration_us, nv_cpu_utilization ...) and the engine's own memory figures.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "grpc_service.pb.h"
#include "server/core/server.h"

namespace anymps::server {

// What the machine does.
struct CpuFigures {
  double utilization = 0;  // since the last reading, in [0, 1]
  uint64_t total_bytes = 0, used_bytes = 0;
};

// Reads /proc. Thread-safe.
class CpuMeter {
 public:
  CpuFigures read();

 private:
  std::mutex mutex_;
  uint64_t busy_ = 0, all_ = 0;
  double utilization_ = 0;
};

// text/plain; version=0.0.4
std::string metrics_text(const inference::ModelStatisticsResponse& statistics,
                         const std::vector<ModelFigures>& models, const CacheFigures& cache,
                         const CpuFigures& cpu);
// Memory and caches of the engine's devices: anymps_memory_allocated_bytes{device="cpu"} ...
std::string engine_metrics_text();

class MetricsPage {
 public:
  explicit MetricsPage(const Server& server) : server_(server) {}
  std::string text() const;  // text/plain; version=0.0.4

 private:
  const Server& server_;
  mutable CpuMeter cpu_;
};

}  // namespace anymps::server
