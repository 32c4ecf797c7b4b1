// SPDX-License-Identifier: Apache-2.0
// An inference request on its way through the server, and its response. The front ends (http/,
// grpc/) make requests and print responses; the core knows neither protocol. Tensors are never
// copied on the way: a buffer keeps its owner alive, which is the body of an HTTP request, a
// protobuf message or a shared memory region.
#pragma once

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "anymps/anymps.h"
#include "serving/error.h"

namespace anymps::server {

using serving::check;
using serving::Code;
using serving::Error;
using serving::refuse;

struct Buffer {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// A buffer that owns these bytes.
inline Buffer own(std::string bytes) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  auto* data = reinterpret_cast<std::byte*>(owner->data());
  const size_t size = owner->size();
  return {std::move(owner), data, size};
}

using Parameter = std::variant<bool, int64_t, uint64_t, double, std::string>;
using Parameters = std::map<std::string, Parameter>;

struct InputTensor {
  std::string name;
  amps_dtype dtype = AMPS_F32;
  std::vector<int64_t> shape;
  std::vector<Buffer> buffers;  // one after the other; strings with 4 bytes of length before each
};

struct OutputTensor {
  std::string name;
  amps_dtype dtype = AMPS_F32;
  std::vector<int64_t> shape;
  Buffer data;
};

struct RequestedOutput {
  std::string name;
  uint32_t classes =
      0;          // > 0: the top classes as strings "value:index[:label]" instead of the elements
  Buffer target;  // shared memory to write to; empty: the server allocates
};

// A sequence is named by a number or a string; 0 and "": the request is not part of one.
using SequenceId = std::variant<uint64_t, std::string>;

// Nanoseconds of the steady clock; 0: not reached.
struct Timestamps {
  uint64_t received = 0, queued = 0, dequeued = 0, compute_start = 0, compute_input_end = 0,
           compute_output_start = 0, compute_end = 0, answered = 0;
};

struct Response {
  std::string model, version, id;
  Parameters parameters;
  std::vector<OutputTensor> outputs;  // in the order in which the model gives them
  std::optional<Error> error;
  bool final = true;
  Timestamps times = {};  // of the request, as far as it came
};

class Trace;  // observation/trace.h: set on requests that are sampled

struct Request {
  std::string model;
  int64_t version = -1;  // -1: the latest
  std::string id;
  SequenceId sequence = uint64_t{0};
  bool sequence_start = false, sequence_end = false;
  uint64_t priority = 0;    // 0: the model's default; 1 is the highest
  uint64_t timeout_us = 0;  // 0: the model's default
  Parameters parameters;    // those that the protocol does not name itself
  std::vector<InputTensor> inputs;
  std::vector<RequestedOutput> outputs;  // empty: all of them
  // Called exactly once, on any thread, possibly before Server::infer returns.
  std::function<void(Response&&)> respond;
  // Set when the client has gone away; what has not begun to compute is then answered with
  // kCancelled.
  std::shared_ptr<std::atomic<bool>> cancelled;
  Timestamps times;
  std::shared_ptr<Trace> trace;
  // What must outlive the request: the version of the model that answers it.
  std::shared_ptr<void> keep;
  // Under which the answer goes into the response cache; "": it does not.
  std::string cache_key;
  uint64_t cache_lookup_ns = 0;
  // A row of zeros that keeps the place of a sequence that has no request just now: it is run like
  // the others, but nobody waits for its answer and it does not count in the statistics.
  bool filler = false;

  bool is_cancelled() const { return cancelled && cancelled->load(std::memory_order_relaxed); }
  bool in_sequence() const {
    const uint64_t* number = std::get_if<uint64_t>(&sequence);
    return number ? *number != 0 : !std::get<std::string>(sequence).empty();
  }
  void fail(Code code, const std::string& message) {
    Response response{model, {}, id, {}, {}, Error(code, message), true};
    respond(std::move(response));
  }
};
using RequestPtr = std::unique_ptr<Request>;

// "[request id: 7] ", as Triton begins its messages.
inline std::string request_prefix(const Request& request) {
  return "[request id: " + (request.id.empty() ? "<id_unknown>" : request.id) + "] ";
}

// The version in a request's path or message; "": -1, the latest. Throws Error.
inline int64_t parse_version(const std::string& text) {
  if (text.empty()) return -1;
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Code::kInvalidArgument,
                "failed to get model version from specified version string '" + text +
                    "' (details: stol), version should be an integral value > 0");
  if (version <= 0)
    throw Error(Code::kInvalidArgument, "invalid model version specified '" + text +
                                            "' , version should be an integral value > 0");
  return version;
}

}  // namespace anymps::server
