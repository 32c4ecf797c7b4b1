// SPDX-License-Identifier: Apache-2.0
// ModelInferRequest to a request of the server, and its response to the bytes of a
// ModelInferResponse. Knows messages, not calls, so that it can be tested and fuzzed alone. Tensors
// are used in place: in the request's message, in shared memory, in the response's buffers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grpc_service.pb.h"
#include "server/core/request.h"

namespace anymps::server {

class SharedMemory;

// Error with Triton's code and wording if the message is refused. The request has no `respond` yet.
RequestPtr decode_infer(std::shared_ptr<const inference::ModelInferRequest> message,
                        const SharedMemory& memory);

// The bytes of a message, one part after the other: those of the message itself, and tensors.
struct Wire {
  struct Part {
    std::string bytes;
    Buffer tensor;  // used if `bytes` is empty
  };
  std::vector<Part> parts;
  size_t size = 0;

  void append(std::string_view bytes);
  void append(Buffer tensor);
  std::string flat() const;  // one string, for tests
};

// What the client asked to be written elsewhere: outputs in shared memory have no bytes in the
// response.
struct InferTargets {
  std::vector<std::string> in_shared_memory;
  bool has(const std::string& output) const;
};
InferTargets targets_of(const Request& request);

// The response must not be an error. `streamed`: with triton_final_response.
Wire encode_infer(Response&& response, const InferTargets& targets, bool streamed);
// The bytes of a ModelStreamInferResponse around a response, or around an error.
Wire encode_streamed(Response&& response, const InferTargets& targets);

}  // namespace anymps::server
