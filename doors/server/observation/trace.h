// SPDX-License-Identifier: Apache-2.0
// The trace extension: samples requests and writes their timestamps as Triton does (JSON, one array
// per file). The mode "opentelemetry" is refused. Settings are global, or of one model.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "grpc_service.pb.h"
#include "server/core/options.h"
#include "server/core/request.h"

namespace anymps::server {

// What is kept for a request that is sampled.
class Trace {
 public:
  uint64_t id = 0;
  bool timestamps = false, tensors = false;
  std::string setting;  // whose settings sampled it: a model, or "" for all
};

class Tracer {
 public:
  // Error(kInvalidArgument) for settings that cannot be understood.
  explicit Tracer(const Options& options);
  ~Tracer();  // writes what is still held

  inference::TraceSettingResponse settings(const std::string& model) const;  // "": the global ones
  // A setting without a value goes back to the global one, or to that of the command line.
  inference::TraceSettingResponse set(const inference::TraceSettingRequest& request);

  // Gives the request a trace if it is its turn (rate, count, level).
  void sample(Request& request) {
    if (active_.load(std::memory_order_relaxed)) choose(request);
  }
  // With all timestamps of the request; model and version as they were chosen. `response`: its
  // tensors are written at level TENSORS.
  void finish(const Request& request, const std::string& version,
              const Response* response = nullptr);

 private:
  struct State;
  void choose(Request& request);
  std::atomic<bool> active_{false};
  std::unique_ptr<State> state_;
};

}  // namespace anymps::server
