// SPDX-License-Identifier: Apache-2.0
// The Prometheus page, with Triton's names (nv_inference_request_success,
// nv_inference_queue_duration_us, nv_cpu_utilization
// ...) and the engine's own memory figures.
#pragma once

#include <string>

namespace server {

class Server;

class MetricsPage {
 public:
  explicit MetricsPage(const Server& server) : server_(server) {}
  std::string text() const;  // text/plain; version=0.0.4

 private:
  const Server& server_;
};

}  // namespace server
