// SPDX-License-Identifier: Apache-2.0
// What the calls of the gRPC side share: the service, how errors become statuses, and the count of
// calls that are alive. Inference runs on completion queues, one thread each: measured against the
// callback interface they take a fifth less processor time per request.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "grpc_service.grpc.pb.h"
#include "server/core/server.h"
#include "server/grpc/infer_codec.h"

namespace anymps::server {

// Infer calls come as bytes: tensors then need no copy on their way out.
using InferService = inference::GRPCInferenceService::WithRawMethod_ModelInfer<
    inference::GRPCInferenceService::WithRawMethod_ModelStreamInfer<
        inference::GRPCInferenceService::Service>>;

grpc::Status to_status(const Error& error);
grpc::ByteBuffer to_bytes(Wire&& wire);

// A call that goes on until the client ends it.
class LongCall {
 public:
  virtual ~LongCall() = default;
  virtual void drain() = 0;  // end as soon as what was asked is answered
};

struct Calls {
  Calls(Server& server, InferService& service) : server(server), service(service) {}

  Server& server;
  InferService& service;
  grpc_compression_level compression = GRPC_COMPRESS_LEVEL_NONE;

  void began();
  void ended();
  size_t alive() const { return alive_.load(std::memory_order_relaxed); }
  // UNAVAILABLE if there are so many calls that a new one is refused: each takes 50 KB and more,
  // even when it only waits.
  grpc::Status check_room() const;
  void add(std::shared_ptr<LongCall> call);
  void remove(LongCall* call);
  bool draining() const;
  void drain();          // every long call, including those that come later
  void wait_for_none();  // until each call that began has ended

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::atomic<size_t> alive_{0};  // changed with the lock held
  bool draining_ = false;
  std::map<LongCall*, std::shared_ptr<LongCall>> long_calls_;
};

// An event of a completion queue: what to do when it comes.
class Event {
 public:
  explicit Event(std::function<void(bool ok)> then) : then_(std::move(then)) {}
  void operator()(bool ok) { then_(ok); }

 private:
  std::function<void(bool ok)> then_;
};

// A call that waits for its client; it makes the next one when its client has come.
void await_infer(Calls& calls, grpc::ServerCompletionQueue* queue);
void await_stream(Calls& calls, grpc::ServerCompletionQueue* queue);

}  // namespace anymps::server
