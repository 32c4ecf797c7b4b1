// SPDX-License-Identifier: Apache-2.0
// The message of an inference request. It lives as long as anything that the request brought is in
// use: the call's end is not the end of its tensors.
#pragma once

#include <atomic>
#include <memory>

#include "server/grpc/calls.h"
#include "server/memory/held_bytes.h"

namespace anymps::server {

class InferMessage {
 public:
  std::atomic<bool> cancelled{false};

  // Takes the bytes, compressed or not. An error if they are not a ModelInferRequest, or if they
  // are larger than `limit` once they are unpacked, or if there is no room in `held` now.
  grpc::Status parse(grpc::ByteBuffer& bytes, uint64_t limit, HeldBytes* held = nullptr);
  const std::string& id() const { return message_.id(); }
  const std::string& model() const { return message_.model_name(); }

  // `self`: what owns this. Throws Error.
  static RequestPtr decode(const std::shared_ptr<InferMessage>& self, const SharedMemory& memory);

 private:
  HeldBytes::Charge charge_;
  inference::ModelInferRequest message_;
};

}  // namespace anymps::server
