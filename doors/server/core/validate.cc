// SPDX-License-Identifier: Apache-2.0
#include "server/core/validate.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>

#include "serving/datatype.h"

namespace anymps::server {
namespace {

using inference::ModelConfig;
using inference::ModelInput;

constexpr char kBatchNote[] =
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be "
    "prepended to each input shape. If you want to specify the full shape including the batch dim "
    "in your input dims config, try setting max_batch_size to zero. See the model configuration "
    "docs for more info on max_batch_size.";

[[noreturn]] void refuse_request(const Request& request, const std::string& message) {
  refuse(request_prefix(request) + message);
}

const ModelInput* find_input(const ModelConfig& config, std::string_view name) {
  for (const ModelInput& input : config.input())
    if (input.name() == name) return &input;
  return nullptr;
}

// In the order in which Triton looks at them: that of its hash table.
std::unordered_map<std::string, const InputTensor*> by_name(const Request& request) {
  std::unordered_map<std::string, const InputTensor*> inputs;
  for (const InputTensor& input : request.inputs) inputs.emplace(input.name, &input);
  return inputs;
}

void check_twice(const Request& request) {
  const std::vector<InputTensor>& inputs = request.inputs;
  const auto found = [&](const std::string_view name) {
    refuse_request(request, "input '" + std::string(name) + "' already exists in request");
  };
  if (inputs.size() <= 8) {
    for (size_t i = 1; i < inputs.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (inputs[i].name == inputs[j].name) found(inputs[i].name);
    return;
  }
  std::vector<std::string_view> names;
  for (const InputTensor& input : inputs) names.push_back(input.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) found(*twice);
}

void check_outputs(const ModelConfig& config, const Request& request) {
  for (const RequestedOutput& wanted : request.outputs)
    if (std::none_of(config.output().begin(), config.output().end(),
                     [&](const auto& output) { return output.name() == wanted.name; }))
      throw Error(Code::kInvalidArgument, "unexpected inference output '" + wanted.name +
                                              "' for model '" + config.name() + "'");
}

void check_count(const ModelConfig& config, const Request& request) {
  const int64_t all = config.input_size();
  int64_t required = 0;
  for (const ModelInput& input : config.input()) required += !input.optional();
  const int64_t given = std::ssize(request.inputs);
  if (given <= all && given >= required) return;
  // Triton's brackets, even when nothing is missing.
  std::string got, missing = "[";
  for (const auto& [name, tensor] : by_name(request))
    got += (got.empty() ? "'" : ",'") + name + "'";
  for (const ModelInput& input : config.input())
    if (!input.optional() &&
        std::none_of(request.inputs.begin(), request.inputs.end(),
                     [&](const InputTensor& tensor) { return tensor.name == input.name(); }))
      missing += "'" + input.name() + "',";
  missing.back() = ']';
  refuse_request(
      request, (required == all ? "expected " + std::to_string(all) + " inputs but got "
                                : "expected number of inputs between " + std::to_string(required) +
                                      " and " + std::to_string(all) + " but got ") +
                   std::to_string(given) + " inputs for model '" + config.name() +
                   "'. Got input(s) [" + got + "], but missing required input(s) " + missing +
                   ". Please provide all required input(s).");
}

const ModelInput& input_of(const ModelConfig& config, const InputTensor& tensor) {
  const ModelInput* input = find_input(config, tensor.name);
  if (!input)
    throw Error(Code::kInvalidArgument, "unexpected inference input '" + tensor.name +
                                            "' for model '" + config.name() + "'");
  return *input;
}

void check_shape(const ModelConfig& config, const Request& request, const InputTensor& tensor,
                 const ModelInput& input) {
  const size_t skip = config.max_batch_size() > 0 ? 1 : 0;
  const auto dims = std::span(tensor.shape).subspan(skip);
  bool fits = std::ssize(dims) == input.dims_size();
  for (int i = 0; fits && i < input.dims_size(); ++i) {
    const int64_t expected = input.dims(i);
    if (dims[i] == -1)
      refuse_request(request, "All input dimensions should be specified for input '" + tensor.name +
                                  "' for model '" + config.name() + "', got " +
                                  serving::shape_text(tensor.shape));
    fits = expected == -1 || expected == dims[i];
  }
  if (fits) return;
  std::vector<int64_t> expected(skip, -1);
  expected.insert(expected.end(), input.dims().begin(), input.dims().end());
  refuse_request(request, "unexpected shape for input '" + tensor.name + "' for model '" +
                              config.name() + "'. Expected " + serving::shape_text(expected) +
                              ", got " + serving::shape_text(tensor.shape) + ". " +
                              (skip ? kBatchNote : ""));
}

void check_bytes(const ModelConfig& config, const Request& request, const InputTensor& tensor) {
  if (tensor.dtype == AMPS_STRING) return;  // the model looks at each length
  size_t given = 0;
  for (const Buffer& buffer : tensor.buffers) given += buffer.bytes;
  const bool batched = config.max_batch_size() > 0;
  const bool none = batched && tensor.shape[0] <= 0;  // such a batch cannot be answered
  const std::optional<size_t> expected = serving::byte_count(tensor.dtype, tensor.shape);
  if (expected && *expected == given && !none) return;
  // What Triton's arithmetic comes to: a batch of nothing counts as one row.
  uint64_t wrapped = amps_dtype_size(tensor.dtype);
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto extent = static_cast<uint64_t>(tensor.shape[i]);
    if (batched && i == 0)
      wrapped *= extent == 0 ? 1 : static_cast<uint32_t>(extent);
    else
      wrapped *= extent;
  }
  refuse_request(request, "input byte size mismatch for input '" + tensor.name + "' for model '" +
                              config.name() + "'. Expected " +
                              std::to_string(static_cast<int64_t>(wrapped)) + ", got " +
                              std::to_string(given));
}

// One batch for all inputs, and not too large.
template <typename Each>
void check_batch(const ModelConfig& config, const Request& request, const Each& each) {
  int64_t batch = 0;
  each([&](const InputTensor& tensor) {
    input_of(config, tensor);
    if (config.max_batch_size() == 0) return;
    if (tensor.shape.empty())
      refuse_request(request, "input '" + tensor.name +
                                  "' has no shape but model requires batch dimension for '" +
                                  config.name() + "'");
    if (batch == 0)
      batch = tensor.shape[0];
    else if (tensor.shape[0] != batch)
      refuse_request(request, "input '" + tensor.name +
                                  "' batch size does not match other inputs for '" + config.name() +
                                  "'");
  });
  if (batch <= config.max_batch_size()) return;
  if (batch > INT32_MAX)  // Triton looks at the rest of the shape first
    each([&](const InputTensor& tensor) {
      check_shape(config, request, tensor, input_of(config, tensor));
    });
  refuse_request(request, "inference request batch-size must be <= " +
                              std::to_string(config.max_batch_size()) + " for '" + config.name() +
                              "'");
}

template <typename Each>
void check_inputs(const ModelConfig& config, const Request& request, const Each& each) {
  check_batch(config, request, each);
  each([&](const InputTensor& tensor) {
    const ModelInput& input = input_of(config, tensor);
    const std::optional<amps_dtype> expected = serving::numbered_datatype(input.data_type());
    if (expected != tensor.dtype)
      refuse_request(
          request, "inference input '" + tensor.name + "' data-type is '" +
                       std::string(serving::datatype_name(tensor.dtype)) + "', but model '" +
                       config.name() + "' expects '" +
                       std::string(expected ? serving::datatype_name(*expected) : "INVALID") + "'");
    check_shape(config, request, tensor, input);
    check_bytes(config, request, tensor);
  });
}

}  // namespace

uint64_t rows_of(const ModelConfig& config, const Request& request) {
  if (config.max_batch_size() == 0 || request.inputs.empty() || request.inputs[0].shape.empty())
    return 1;
  return static_cast<uint64_t>(std::max<int64_t>(request.inputs[0].shape[0], 0));
}

void validate(const ModelConfig& config, const Request& request) {
  check_twice(request);
  check_outputs(config, request);
  check_count(config, request);
  try {
    check_inputs(config, request, [&](const auto& look) {
      for (const InputTensor& tensor : request.inputs) look(tensor);
    });
  } catch (const Error&) {
    // Of several inputs that are wrong, the one that Triton would name.
    if (request.inputs.size() < 2) throw;
    const auto inputs = by_name(request);
    check_inputs(config, request, [&](const auto& look) {
      for (const auto& [name, tensor] : inputs) look(*tensor);
    });
    throw;
  }
}

}  // namespace anymps::server
