// SPDX-License-Identifier: Apache-2.0
// The message of an inference request. It lives as long as anything that the request brought is in
// use: the call's end is not the end of its tensors.
#pragma once

#include <atomic>
#include <chrono>

#include "server/grpc/calls.h"

namespace server {

class InferMessage {
 public:
  std::atomic<bool> cancelled{false};

  // Takes the bytes; false if they are not a ModelInferRequest.
  bool parse(grpc::ByteBuffer& bytes) {
    return grpc::SerializationTraits<inference::ModelInferRequest>::Deserialize(&bytes, &message_)
        .ok();
  }
  static grpc::Status unreadable() {
    return {grpc::StatusCode::INTERNAL, "Unable to parse request"};
  }
  const std::string& id() const { return message_.id(); }
  const std::string& model() const { return message_.model_name(); }

  // `self`: what owns this. Throws Error.
  static RequestPtr decode(const std::shared_ptr<InferMessage>& self, const SharedMemory& memory) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    RequestPtr request = decode_infer({self, &self->message_}, memory);
    request->times.received =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    request->cancelled = {self, &self->cancelled};
    return request;
  }

 private:
  inference::ModelInferRequest message_;
};

}  // namespace server
