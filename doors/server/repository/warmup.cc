// SPDX-License-Identifier: Apache-2.0
#include "server/repository/warmup.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <set>

#include "server/core/clock.h"
#include "server/core/validate.h"
#include "server/memory/buffer_pool.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

namespace fs = std::filesystem;
using inference::ModelWarmup;

[[noreturn]] void refuse_warmup(const std::string& message) {
  refuse(request_prefix({}) + message);
}

// Random bytes could be numbers that no model expects, such as not-a-number: elements are in [0, 1)
// or small integers instead.
void fill_random(amps_dtype dtype, std::byte* data, size_t count) {
  std::mt19937 generator(42);
  const size_t size = amps_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = generator();
    std::byte* to = data + i * size;
    const float real = static_cast<float>(bits >> 8) * 0x1p-24f;
    if (dtype == AMPS_F32) {
      std::memcpy(to, &real, sizeof real);
    } else if (dtype == AMPS_F64) {
      const double wide = real;
      std::memcpy(to, &wide, sizeof wide);
    } else if (dtype == AMPS_F16) {  // 2^-k with a random mantissa: in [2^-14, 1)
      const auto half = static_cast<uint16_t>((1 + bits % 14) << 10 | (bits >> 16 & 0x3ff));
      std::memcpy(to, &half, sizeof half);
    } else if (dtype == AMPS_BF16) {
      uint32_t word;
      std::memcpy(&word, &real, sizeof word);
      const auto high = static_cast<uint16_t>(word >> 16);
      std::memcpy(to, &high, sizeof high);
    } else {
      std::memset(to, 0, size);
      const auto low = static_cast<uint8_t>(dtype == AMPS_BOOL ? bits & 1 : bits & 0x7f);
      std::memcpy(to, &low, 1);
    }
  }
}

Buffer read_buffer(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw Error(Code::kInternal,
                "failed to open text file for read " + path.string() + ": " + std::strerror(errno));
  const std::streamsize bytes = file.tellg();
  Buffer buffer = allocate_buffer(bytes);
  file.seekg(0);
  if (bytes && !file.read(reinterpret_cast<char*>(buffer.data), bytes))
    throw Error(Code::kInternal, "failed to read " + path.string());
  return buffer;
}

Buffer fill(const ModelWarmup::Input& input, const std::string& name, amps_dtype dtype,
            const std::vector<int64_t>& shape, const serving::ModelDir& model_dir) {
  const std::optional<int64_t> count = serving::element_count(shape);
  const std::optional<size_t> bytes = serving::least_bytes(dtype, shape);
  if (!count || !bytes)
    refuse_warmup("warmup setting expects input '" + name +
                  "' to have a shape that fits into memory, " + serving::shape_text(shape) +
                  " given");
  switch (input.input_data_type_case()) {
    case ModelWarmup::Input::kZeroData:
    case ModelWarmup::Input::kRandomData: {
      Buffer buffer = allocate_buffer(*bytes);
      if (*bytes) std::memset(buffer.data, 0, *bytes);
      if (input.has_random_data() && dtype != AMPS_STRING) fill_random(dtype, buffer.data, *count);
      return buffer;
    }
    case ModelWarmup::Input::kInputDataFile: {
      Buffer buffer =
          read_buffer(model_dir.file("warmup", input.input_data_file(),
                                     "warmup setting of input '" + name + "', input_data_file"));
      if (dtype != AMPS_STRING && buffer.bytes < *bytes)
        refuse_warmup("warmup setting expects " + std::to_string(*bytes) +
                      " bytes, but the data "
                      "provided from " +
                      input.input_data_file() + "is " + std::to_string(buffer.bytes) + " bytes");
      if (dtype != AMPS_STRING) buffer.bytes = *bytes;
      return buffer;
    }
    default:
      refuse_warmup("warmup setting expects input '" + name + "' to have input_data_type set");
  }
}

// Inputs that the sequence batcher would add; a warm-up may give them itself.
std::set<std::string> internal_inputs(const inference::ModelConfig& config) {
  std::set<std::string> names;
  for (const auto& control : config.sequence_batching().control_input())
    names.insert(control.name());
  for (const auto& state : config.sequence_batching().state()) names.insert(state.input_name());
  return names;
}

Request make_request(const inference::ModelConfig& config, const ModelWarmup& warmup,
                     const serving::ModelDir& model_dir) {
  Request request;
  request.model = config.name();
  std::vector<InputTensor> internal;
  const std::set<std::string> internal_names = internal_inputs(config);
  for (const auto& [name, setting] : warmup.inputs()) {
    const bool known =
        std::any_of(config.input().begin(), config.input().end(),
                    [&, &name = name](const auto& input) { return input.name() == name; });
    const bool is_internal = internal_names.contains(name);
    if (!known && !is_internal) continue;
    const std::optional<amps_dtype> dtype = serving::numbered_datatype(setting.data_type());
    if (!dtype) refuse_warmup("warmup setting expects input '" + name + "' to have a data type");
    InputTensor tensor;
    tensor.name = name;
    tensor.dtype = *dtype;
    if (config.max_batch_size() > 0) tensor.shape.push_back(1);
    tensor.shape.insert(tensor.shape.end(), setting.dims().begin(), setting.dims().end());
    tensor.buffers.push_back(fill(setting, name, *dtype, tensor.shape, model_dir));
    (known ? request.inputs : internal).push_back(std::move(tensor));
  }
  validate(config, request);
  for (InputTensor& tensor : internal) request.inputs.push_back(std::move(tensor));
  return request;
}

}  // namespace

void warm_up(const inference::ModelConfig& config, const serving::ModelDir& model_dir,
             Instance& instance) {
  for (const ModelWarmup& warmup : config.model_warmup()) {
    if (warmup.batch_size() == 0) continue;
    const Request sample = make_request(config, warmup, model_dir);
    const uint32_t rows = config.max_batch_size() > 0
                              ? std::min<uint32_t>(warmup.batch_size(),
                                                   static_cast<uint32_t>(config.max_batch_size()))
                              : warmup.batch_size();
    for (uint32_t run = 0; run < std::max(warmup.count(), 1u); ++run) {
      std::vector<RequestPtr> batch;
      std::optional<Error> failed;
      for (uint32_t row = 0; row < (config.max_batch_size() > 0 ? rows : 1); ++row) {
        auto request = std::make_unique<Request>();
        request->model = sample.model;
        request->inputs = sample.inputs;
        request->times.received = request->times.queued = request->times.dequeued = now_ns();
        request->respond = [&failed](Response&& response) {
          if (response.error && !failed) failed = response.error;
        };
        batch.push_back(std::move(request));
      }
      instance.run(std::move(batch));
      if (failed)
        throw Error(failed->code(), "warmup sample '" + warmup.name() + "': " + failed->what());
    }
  }
}

}  // namespace anymps::server
