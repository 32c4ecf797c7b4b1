// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/infer_codec.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "server/grpc/typed_contents.h"
#include "server/memory/shared_memory.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors travel as little-endian bytes");

using inference::InferParameter;
using inference::ModelInferRequest;
using ParameterMap = google::protobuf::Map<std::string, InferParameter>;

constexpr std::string_view kEmptyFinal = "triton_enable_empty_final_response";
constexpr std::string_view kReserved = "triton_";
// Longer waits than this say nothing, and their nanoseconds would not fit.
constexpr int64_t kLongestTimeoutUs = 1'000'000'000'000'000;
constexpr size_t kCopied = 1024;      // of a tensor: a part of its own costs more than the copy
constexpr size_t kMostHead = 11;      // of a field: a tag of one byte and a number
constexpr size_t kArenaBlock = 1024;  // holds the fields of a response with few outputs

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void refuse_type(std::string_view name, std::string_view expected) {
  refuse("invalid value type for '{}' parameter, expected {}.", name, expected);
}

bool boolean(std::string_view name, const InferParameter& value) {
  if (value.parameter_choice_case() != InferParameter::kBoolParam) refuse_type(name, "bool_param");
  return value.bool_param();
}

SequenceId sequence_id(const InferParameter& value) {
  if (value.parameter_choice_case() == InferParameter::kInt64Param)
    return static_cast<uint64_t>(value.int64_param());
  if (value.parameter_choice_case() != InferParameter::kStringParam)
    refuse_type("sequence_id", "int64_param or string_param");
  return value.string_param();
}

uint64_t priority(const InferParameter& value) {
  if (value.parameter_choice_case() == InferParameter::kUint64Param) return value.uint64_param();
  if (value.parameter_choice_case() != InferParameter::kInt64Param)
    refuse_type("priority", "int64_param or uint64_param");
  if (value.int64_param() < 0) refuse("invalid value for 'priority', expected value >= 0.");
  return static_cast<uint64_t>(value.int64_param());
}

uint64_t timeout(const InferParameter& value) {
  if (value.parameter_choice_case() != InferParameter::kInt64Param)
    refuse_type("timeout", "int64_param");
  return static_cast<uint64_t>(std::clamp<int64_t>(value.int64_param(), 0, kLongestTimeoutUs));
}

Parameter custom(std::string_view name, const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return value.bool_param();
    case InferParameter::kInt64Param:
      return value.int64_param();
    case InferParameter::kStringParam:
      return value.string_param();
    case InferParameter::kDoubleParam:
      return value.double_param();
    case InferParameter::kUint64Param:
      return value.uint64_param();
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  refuse_type(name, "int64_param, bool_param, or string_param");
}

void read_parameters(const ParameterMap& parameters, Request& request) {
  for (const auto& [name, value] : parameters) {
    if (name == "sequence_id")
      request.sequence = sequence_id(value);
    else if (name == "sequence_start")
      request.sequence_start = boolean(name, value);
    else if (name == "sequence_end")
      request.sequence_end = boolean(name, value);
    else if (name == "priority")
      request.priority = priority(value);
    else if (name == "timeout")
      request.timeout_us = timeout(value);
    else if (name == kEmptyFinal)
      boolean(name, value);
    else if (name.starts_with(kReserved))
      refuse(
          "parameter keys starting with 'triton_' are reserved for Triton usage. Only the "
          "following keys starting with 'triton_' are allowed: {}",
          kEmptyFinal);
    else
      request.parameters.emplace(name, custom(name, value));
  }
}

const InferParameter* find(const ParameterMap& parameters, const char* name) {
  if (parameters.empty()) return nullptr;  // the usual case: no name to hash
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

// The part of a shared memory region that the parameters of a tensor name; no data if they do not.
Buffer shared_buffer(const ParameterMap& parameters, const std::string& tensor,
                     const SharedMemory& memory) {
  const InferParameter* region = find(parameters, "shared_memory_region");
  if (region && region->parameter_choice_case() != InferParameter::kStringParam)
    refuse(
        "invalid value type for 'shared_memory_region' parameter for tensor '{}', expected "
        "string_param.",
        tensor);
  const auto number = [&](const char* name) -> std::optional<uint64_t> {
    const InferParameter* value = find(parameters, name);
    if (!value) return std::nullopt;
    if (!region)
      refuse("'{}' can not be specified without 'shared_memory_region' parameter for tensor '{}'",
             name, tensor);
    if (value->parameter_choice_case() != InferParameter::kInt64Param)
      refuse("invalid value type for '{}' parameter for tensor '{}', expected int64_param.", name,
             tensor);
    return static_cast<uint64_t>(value->int64_param());
  };
  const std::optional<uint64_t> offset = number("shared_memory_offset");
  const std::optional<uint64_t> bytes = number("shared_memory_byte_size");
  if (!region) return {};
  if (!bytes)
    refuse(
        "'shared_memory_byte_size' must be specified along with 'shared_memory_region' "
        "parameter for tensor '{}'",
        tensor);
  return memory.buffer(region->string_param(), offset.value_or(0), *bytes);
}

// Bytes of the message itself, which lives as long as the buffer. Inputs are only read.
Buffer inside(const std::shared_ptr<const ModelInferRequest>& message, const void* data,
              size_t bytes) {
  return {std::const_pointer_cast<ModelInferRequest>(message),
          const_cast<std::byte*>(static_cast<const std::byte*>(data)), bytes};
}

void read_inputs(const std::shared_ptr<const ModelInferRequest>& message,
                 const SharedMemory& memory, Request& request) {
  request.inputs.reserve(message->inputs_size());
  int raw = 0;
  std::unordered_set<std::string_view> names;
  for (const auto& input : message->inputs()) {
    if (message->inputs_size() > 1 && !names.insert(input.name()).second)
      refuse("{}input '{}' already exists in request", request_prefix(request), input.name());
    const std::optional<amps_dtype> dtype = serving::parse_datatype(input.datatype());
    if (!dtype)
      refuse("{}inference input '{}' data-type is '<invalid>', which model '{}' does not take",
             request_prefix(request), input.name(), request.model);
    InputTensor& tensor = request.inputs.emplace_back();
    tensor.name = input.name();
    tensor.dtype = *dtype;
    tensor.shape.assign(input.shape().begin(), input.shape().end());
    if (input.has_contents() && message->raw_input_contents_size() > 0)
      refuse(
          "contents field must not be specified when using raw_input_contents for '{}' for "
          "model '{}'",
          input.name(), request.model);
    Buffer shared = shared_buffer(input.parameters(), input.name(), memory);
    if (shared.data) {
      if (input.has_contents())
        refuse(
            "unexpected 'content' provided when using shared memory for input tensor '{}' for "
            "model '{}'",
            input.name(), request.model);
      tensor.buffers.push_back(std::move(shared));
    } else if (raw < message->raw_input_contents_size()) {
      const std::string& bytes = message->raw_input_contents(raw++);
      tensor.buffers.push_back(inside(message, bytes.data(), bytes.size()));
    } else if (input.has_contents()) {
      tensor.buffers.push_back(typed_contents(message, input, *dtype));
    } else {
      refuse("unable to find data for input tensor '{}' for model '{}' in request.", input.name(),
             request.model);
    }
  }
}

void read_outputs(const ModelInferRequest& message, const SharedMemory& memory, Request& request) {
  std::unordered_set<std::string_view> names;
  for (const auto& output : message.outputs()) {
    RequestedOutput wish;
    wish.name = output.name();
    if (const InferParameter* classes = find(output.parameters(), "classification")) {
      if (classes->parameter_choice_case() != InferParameter::kInt64Param)
        refuse("invalid value type for 'classification' parameter, expected int64_param");
      if (classes->int64_param() <= 0)
        refuse("invalid value for 'classification' parameter, expected >= 0");
      wish.classes = static_cast<uint32_t>(
          std::min<int64_t>(classes->int64_param(), std::numeric_limits<uint32_t>::max()));
    }
    wish.target = shared_buffer(output.parameters(), output.name(), memory);
    if (wish.target.data && wish.classes > 0)
      refuse("output can't set both 'shared_memory_region' and 'classification'");
    if (message.outputs_size() == 1 || names.insert(output.name()).second)
      request.outputs.push_back(std::move(wish));
  }
}

void set_parameter(const Parameter& value, InferParameter& to) {
  if (const bool* b = std::get_if<bool>(&value))
    to.set_bool_param(*b);
  else if (const int64_t* i = std::get_if<int64_t>(&value))
    to.set_int64_param(*i);
  else if (const uint64_t* u = std::get_if<uint64_t>(&value))  // Triton knows signed ones alone
    *u <= INT64_MAX ? to.set_int64_param(static_cast<int64_t>(*u)) : to.set_uint64_param(*u);
  else if (const double* d = std::get_if<double>(&value))
    to.set_double_param(*d);
  else
    to.set_string_param(std::get<std::string>(value));
}

// The tag and length before `bytes` bytes of a field with this number, which is below 16.
void append_head(Wire& wire, uint32_t field, uint64_t bytes) {
  uint8_t head[kMostHead] = {static_cast<uint8_t>(field << 3 | 2)};
  const uint8_t* end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(bytes, head + 1);
  wire.append(std::string_view(reinterpret_cast<const char*>(head), end - head));
}

}  // namespace

RequestPtr decode_infer(std::shared_ptr<const ModelInferRequest> message,
                        const SharedMemory& memory) {
  auto request = std::make_unique<Request>();
  request->model = message->model_name();
  request->version = parse_version(message->model_version());
  request->id = message->id();
  read_parameters(message->parameters(), *request);
  read_inputs(message, memory, *request);
  read_outputs(*message, memory, *request);
  return request;
}

void Wire::append(std::string_view bytes) {
  size += bytes.size();
  if (bytes.empty()) return;
  if (parts.empty() || parts.back().bytes.empty()) parts.emplace_back();
  parts.back().bytes += bytes;
}

void Wire::append(Buffer tensor) {
  if (tensor.bytes <= kCopied) {
    append({reinterpret_cast<const char*>(tensor.data), tensor.bytes});
    return;
  }
  size += tensor.bytes;
  parts.push_back({{}, std::move(tensor)});
}

std::string Wire::flat() const {
  std::string text;
  for (const Part& part : parts)
    if (part.bytes.empty())
      text.append(reinterpret_cast<const char*>(part.tensor.data), part.tensor.bytes);
    else
      text += part.bytes;
  return text;
}

bool InferTargets::has(const std::string& output) const {
  return std::find(in_shared_memory.begin(), in_shared_memory.end(), output) !=
         in_shared_memory.end();
}

InferTargets targets_of(const Request& request) {
  InferTargets targets;
  for (const RequestedOutput& output : request.outputs)
    if (output.target.data) targets.in_shared_memory.push_back(output.name);
  return targets;
}

Wire encode_infer(Response&& response, const InferTargets& targets, bool streamed) {
  alignas(8) char first_block[kArenaBlock];
  google::protobuf::Arena arena(first_block, sizeof first_block);
  auto& message = *google::protobuf::Arena::CreateMessage<inference::ModelInferResponse>(&arena);
  message.set_model_name(std::move(response.model));
  message.set_model_version(std::move(response.version));
  message.set_id(std::move(response.id));
  for (const auto& [name, value] : response.parameters)
    set_parameter(value, (*message.mutable_parameters())[name]);
  if (streamed)
    (*message.mutable_parameters())["triton_final_response"].set_bool_param(response.final);
  for (OutputTensor& output : response.outputs) {
    auto* tensor = message.add_outputs();
    tensor->set_datatype(std::string(serving::datatype_name(output.dtype)));
    tensor->mutable_shape()->Add(output.shape.begin(), output.shape.end());
    if (targets.has(output.name)) output.data = {};
    tensor->set_name(std::move(output.name));
  }
  // The tensors come last, as the field with the highest number: 6, raw_output_contents.
  static_assert(inference::ModelInferResponse::kRawOutputContentsFieldNumber == 6);
  Wire wire;
  size_t copied = message.ByteSizeLong();
  for (const OutputTensor& output : response.outputs)
    copied += kMostHead + (output.data.bytes <= kCopied ? output.data.bytes : 0);
  std::string& bytes = wire.parts.emplace_back().bytes;
  bytes.reserve(copied);
  message.AppendToString(&bytes);
  wire.size = bytes.size();
  for (OutputTensor& output : response.outputs) {
    append_head(wire, 6, output.data.bytes);
    wire.append(std::move(output.data));
  }
  return wire;
}

Wire encode_streamed(Response&& response, const InferTargets& targets) {
  if (response.error) {
    inference::ModelStreamInferResponse message;
    message.set_error_message(response.error->what());
    message.mutable_infer_response()->set_id(std::move(response.id));
    Wire wire;
    wire.append(message.SerializeAsString());
    return wire;
  }
  Wire inner = encode_infer(std::move(response), targets, true);
  Wire wire;
  append_head(wire, inference::ModelStreamInferResponse::kInferResponseFieldNumber, inner.size);
  for (Wire::Part& part : inner.parts)
    if (part.bytes.empty())
      wire.append(std::move(part.tensor));
    else
      wire.append(part.bytes);
  return wire;
}

}  // namespace anymps::server
