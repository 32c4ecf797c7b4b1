// SPDX-License-Identifier: Apache-2.0
// The server without its protocols: what the HTTP and the gRPC side call. Answers are the
// protocol's messages; the HTTP side prints them as JSON. Every method is thread-safe; failures are
// `Error`s with Triton's codes and wording.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grpc_service.pb.h"
#include "server/core/options.h"
#include "server/core/request.h"

namespace anymps::server {

class HeldBytes;     // memory/held_bytes.h
class Logger;        // observation/logger.h
class MetricsPage;   // observation/metrics.h
class SharedMemory;  // memory/shared_memory.h
class Tracer;        // observation/trace.h

struct ModelFigures {
  std::string model, version;
  int64_t pending = 0;                 // requests that wait
  std::map<Code, uint64_t> failures;   // since it was loaded
  std::array<double, 3> latency_ms{};  // 50 %, 90 %, 99 % of the last requests
};

struct CacheFigures {
  bool enabled = false;
  uint64_t bytes = 0, capacity = 0, entries = 0, hits = 0, misses = 0, evictions = 0;
};

class Server {
 public:
  explicit Server(Options options);
  ~Server();

  // Loads the models that the control mode asks for and begins to watch the repositories. Throws
  // kInternal if a model does not load and `exit_on_error` is set.
  void start();
  // No new requests; waits until those that were accepted are answered, `exit_timeout_seconds` at
  // most. Returns false if some were not: the destructor would wait for them.
  bool stop();

  const Options& options() const;
  bool live() const;
  bool ready() const;
  bool model_ready(const std::string& model, const std::string& version) const;

  inference::ServerMetadataResponse metadata() const;
  inference::ModelMetadataResponse model_metadata(const std::string& model,
                                                  const std::string& version) const;
  inference::ModelConfig model_config(const std::string& model, const std::string& version) const;
  // "" for all models, all versions.
  inference::ModelStatisticsResponse statistics(const std::string& model,
                                                const std::string& version) const;

  // What the metrics and the status page show beyond statistics(): one entry per version that is
  // loaded.
  std::vector<ModelFigures> figures() const;
  CacheFigures cache_figures() const;

  inference::RepositoryIndexResponse repository_index(bool ready_only) const;
  // Parameters: "config" (JSON), "file:<version>/<name>" (the bytes of a file of the model).
  void load_model(const std::string& model, const Parameters& parameters);
  void unload_model(const std::string& model, bool with_dependents);

  // Answers through request->respond, even when the request is refused.
  void infer(RequestPtr request);

  // Gives back memory that has lain unused for longer than MPS_MAX_BUFFER_AGE. Whoever runs the
  // server calls it now and then: while no requests come, nothing else does.
  void trim();

  Logger& logger();
  MetricsPage& metrics();
  SharedMemory& shared_memory();
  HeldBytes& held_bytes();
  Tracer& tracer();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anymps::server
