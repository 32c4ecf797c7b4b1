// SPDX-License-Identifier: Apache-2.0
// Bodies of inference requests and responses: JSON, with tensors inside it or as binary data behind
// it. Tensors that came as binary data or lie in shared memory are used where they are; outputs are
// sent from where they are. Knows nothing of sockets.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/core/request.h"

namespace anymps::server::http {

// How the outputs of a request go back.
struct OutputForm {
  enum class Kind { kJson, kBinary, kSharedMemory } kind = Kind::kJson;
  std::string name;
};
struct ReplyForm {
  OutputForm::Kind others = OutputForm::Kind::kJson;  // outputs that the request does not name
  std::vector<OutputForm> outputs;

  OutputForm::Kind of(std::string_view output) const;
};

// An input as the model's metadata tells it; -1: any extent.
struct TensorInfo {
  std::string name;
  amps_dtype dtype = AMPS_F32;
  std::vector<int64_t> shape;
};

// Finds a part of a shared memory region, or throws.
using FindRegion =
    std::function<Buffer(const std::string& region, uint64_t offset, uint64_t bytes)>;

// Fills what the body says of `request` (whose model is set). The first `json_bytes` of the body
// are JSON, the rest is binary data of the inputs. Throws Error with Triton's code and words.
ReplyForm decode_infer(const Buffer& body, size_t json_bytes, const FindRegion& find_region,
                       Request& request);

// The whole body is the data of the model's only input. Its shape follows from the size; `batched`:
// the first extent is the batch.
ReplyForm decode_raw(const Buffer& body, std::span<const TensorInfo> inputs, bool batched,
                     Request& request);

// A body as it is sent: pieces in order.
struct EncodedBody {
  std::vector<Buffer> pieces;
  size_t json_bytes = 0;    // the first piece
  bool has_binary = false;  // more than JSON
};
// Of a response without error. Throws Error if an output cannot be sent in the form that was asked
// for.
EncodedBody encode_infer(const Response& response, const ReplyForm& form);

// One parameter of a request, as custom parameters are: int, bool, string or double.
class JsonReader;
Parameter read_parameter(JsonReader& reader, std::string_view name);

}  // namespace anymps::server::http
