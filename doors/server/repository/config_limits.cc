// SPDX-License-Identifier: Apache-2.0
// The numbers of a configuration against repository/limits.h. Messages name the place in it.
#include <algorithm>
#include <string>

#include "server/repository/config_text.h"
#include "server/repository/limits.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

using inference::ModelConfig;

std::string model_text(const ModelConfig& config) { return "model '" + config.name() + "', "; }

[[noreturn]] void too_much(const std::string& place, const std::string& given, uint64_t most) {
  refuse(place + ": at most " + std::to_string(most) + " is possible, " + given + " given");
}

// Bytes of a tensor whose type is given; strings count as empty ones.
uint64_t tensor_bytes(const std::string& place, inference::DataType type,
                      std::vector<int64_t> shape) {
  const std::optional<amps_dtype> dtype = serving::numbered_datatype(type);
  for (int64_t& extent : shape) extent = extent == -1 ? 1 : extent;
  const std::optional<size_t> bytes =
      serving::byte_count(!dtype || *dtype == AMPS_STRING ? AMPS_U32 : *dtype, shape);
  if (!bytes) refuse(place + ": the shape " + serving::shape_text(shape) + " is not possible");
  return *bytes;
}

uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
uint64_t plus(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void check_warmup(const ModelConfig& config) {
  uint64_t runs = 0;
  for (int i = 0; i < config.model_warmup_size(); ++i) {
    const inference::ModelWarmup& sample = config.model_warmup(i);
    const std::string place =
        model_text(config) + "model_warmup[" + std::to_string(i) + "] '" + sample.name() + "'";
    if (sample.batch_size() == 0) continue;  // is not run
    runs += std::max<uint64_t>(sample.count(), 1);
    if (runs > kMaxWarmupRuns)
      too_much(place + ", count", std::to_string(runs) + " runs in all", kMaxWarmupRuns);
    const uint64_t rows = config.max_batch_size() > 0
                              ? std::min<uint64_t>(sample.batch_size(),
                                                   static_cast<uint64_t>(config.max_batch_size()))
                              : 1;
    uint64_t bytes = 0;
    for (const auto& [name, input] : sample.inputs()) {
      const std::string where = place + ", input '" + name + "', dims";
      bytes = plus(bytes, times(rows, tensor_bytes(where, input.data_type(),
                                                   {input.dims().begin(), input.dims().end()})));
      if (bytes > kMaxWarmupBytes)
        too_much(where, std::to_string(bytes) + " bytes for " + std::to_string(rows) + " rows",
                 kMaxWarmupBytes);
    }
  }
}

void check_sequences(const ModelConfig& config) {
  const auto& sequences = config.sequence_batching();
  const std::string place = model_text(config) + "sequence_batching";
  if (sequences.oldest().max_candidate_sequences() > kMaxCandidateSequences)
    too_much(place + ".oldest.max_candidate_sequences",
             std::to_string(sequences.oldest().max_candidate_sequences()), kMaxCandidateSequences);
  uint64_t bytes = 0;
  for (int i = 0; i < sequences.state_size(); ++i) {
    const auto& state = sequences.state(i);
    const std::string where = place + ".state[" + std::to_string(i) + "]";
    bytes = plus(bytes, tensor_bytes(where + ".dims", state.data_type(),
                                     {state.dims().begin(), state.dims().end()}));
    for (const auto& initial : state.initial_state())
      bytes = plus(bytes, tensor_bytes(where + ".initial_state.dims", initial.data_type(),
                                       {initial.dims().begin(), initial.dims().end()}));
    if (bytes > kMaxStateBytes) too_much(where, std::to_string(bytes) + " bytes", kMaxStateBytes);
  }
}

template <typename Tensors>
void check_shapes(const ModelConfig& config, const Tensors& tensors, const std::string& kind) {
  for (const auto& tensor : tensors) {
    const std::string place = model_text(config) + kind + " '" + tensor.name() + "'";
    tensor_bytes(place + ", dims", tensor.data_type(),
                 {tensor.dims().begin(), tensor.dims().end()});
    tensor_bytes(place + ", reshape", tensor.data_type(),
                 {tensor.reshape().shape().begin(), tensor.reshape().shape().end()});
  }
}

void check_instances(const ModelConfig& config) {
  int64_t instances = 0;
  for (const auto& group : config.instance_group())
    instances += int64_t{group.count()} * std::max(group.gpus_size(), 1);
  if (instances > kMaxInstances)
    too_much(model_text(config) + "instance_group, count", std::to_string(instances),
             kMaxInstances);
}

}  // namespace

void check_limits(const ModelConfig& config) {
  if (config.max_batch_size() > kMaxBatchRows)
    too_much(model_text(config) + "max_batch_size", std::to_string(config.max_batch_size()),
             kMaxBatchRows);
  check_shapes(config, config.input(), "input");
  check_shapes(config, config.output(), "output");
  check_instances(config);
  check_sequences(config);
  check_warmup(config);
}

}  // namespace anymps::server
