// SPDX-License-Identifier: Apache-2.0
// The trace extension: samples requests and writes their timestamps as Triton does (JSON, one array
// a file). The mode "opentelemetry" is refused. Settings are global, or of one model.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "grpc_service.pb.h"
#include "server/core/options.h"
#include "server/core/request.h"

namespace server {

class Tracer {
 public:
  explicit Tracer(const Options& options);
  ~Tracer();  // writes what is still held

  inference::TraceSettingResponse settings(const std::string& model) const;  // "": the global ones
  inference::TraceSettingResponse set(const inference::TraceSettingRequest& request);

  // Gives the request a trace if it is its turn (rate, count, level).
  void sample(Request& request);
  // With all timestamps of the request; model and version as they were chosen.
  void finish(const Request& request, const std::string& version);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace server
