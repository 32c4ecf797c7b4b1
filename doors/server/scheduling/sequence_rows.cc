// SPDX-License-Identifier: Apache-2.0
// Rows of one batch have inputs and states of one shape; a request that differs waits for a batch
// of its kind, and the oldest request decides which kind is next.
#include "server/scheduling/sequence_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/core/clock.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

const inference::ModelConfig& checked(const inference::ModelConfig& config) {
  const inference::ModelSequenceBatching& batching = config.sequence_batching();
  if (batching.iterative_sequence())
    throw Error(Code::kUnsupported, "iterative sequences are not supported: model '" +
                                        config.name() + "' answers a request at once");
  for (int32_t size : batching.oldest().preferred_batch_size()) {
    check(size > 0, "sequence batching preferred batch size must be positive for " + config.name());
    check(size <= std::max(1, config.max_batch_size()),
          "sequence batching preferred batch size must be <= max batch size for " + config.name());
  }
  const float utilization = batching.direct().minimum_slot_utilization();
  check(utilization >= 0 && utilization <= 1,
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for " +
            config.name());
  return config;
}

size_t slots_for(const inference::ModelConfig& config) {
  const int32_t rows = std::max(1, config.max_batch_size());
  const int32_t candidates = config.sequence_batching().oldest().max_candidate_sequences();
  return config.sequence_batching().has_oldest() && candidates > 0 ? candidates : rows;
}

// A row like `like`, of zeros.
RequestPtr make_filler(const Request& like) {
  auto filler = std::make_unique<Request>();
  filler->filler = true;
  filler->model = like.model;
  filler->version = like.version;
  filler->times = like.times;
  filler->respond = [](Response&&) {};
  for (const RequestedOutput& output : like.outputs)
    filler->outputs.push_back({output.name, 0, {}});
  for (const InputTensor& input : like.inputs) {
    size_t bytes = 0;
    for (const Buffer& buffer : input.buffers) bytes += buffer.bytes;
    // An empty string is 4 bytes, and no string is shorter.
    if (input.dtype == AMPS_STRING)
      bytes = std::min(bytes, serving::least_bytes(input.dtype, input.shape).value_or(0));
    const std::shared_ptr<std::byte[]> zeros(new std::byte[bytes]());
    filler->inputs.push_back({input.name, input.dtype, input.shape, {{zeros, zeros.get(), bytes}}});
  }
  return filler;
}

// The states that the next request of a sequence starts from; null: the initial ones.
const SequenceStates::Values* states_of(const Sequence& sequence) {
  return sequence.requests.front()->sequence_start ? nullptr : sequence.states.get();
}

}  // namespace

SequenceRows::SequenceRows(const inference::ModelConfig& config, const serving::ModelDir& model_dir)
    : oldest_(checked(config).sequence_batching().has_oldest()),
      direct_(config.sequence_batching().direct()),
      slots_each_(slots_for(config)),
      rules_(config, true, config.sequence_batching().oldest().preferred_batch_size(),
             config.sequence_batching().oldest().max_queue_delay_microseconds()),
      controls_(config),
      states_(config, model_dir) {}

std::string SequenceRows::refusal(const Request& request) const {
  const std::string to_model = "inference request to model '" + request.model + "' must specify ";
  if (rules_.rows(request) > 1)
    return to_model + "batch-size 1 due to requirements of sequence batcher";
  if (!request.in_sequence()) return to_model + "a non-zero or non-empty correlation ID";
  const std::string message = controls_.refusal(request);
  return message.empty() ? states_.refusal(request) : message;
}

bool SequenceRows::together(const Sequence& a, const Sequence& b) const {
  return rules_.together(*a.requests.front(), *b.requests.front()) &&
         states_.together(states_of(a), states_of(b));
}

SequenceRows::Plan SequenceRows::plan_direct(const std::vector<SequencePtr>& slots) const {
  const auto ready = [](const SequencePtr& one) { return one && !one->requests.empty(); };
  const Sequence* first = nullptr;
  size_t count = 0;
  for (const SequencePtr& one : slots) {
    if (!ready(one)) continue;
    ++count;
    if (!first || one->requests.front()->times.queued < first->requests.front()->times.queued)
      first = one.get();
  }
  if (!first) return {};
  const uint64_t delay = direct_.max_queue_delay_microseconds();
  const uint64_t due = after_us(first->requests.front()->times.queued, delay);
  const float filled = static_cast<float>(count) / static_cast<float>(slots_each_);
  if (delay > 0 && filled < direct_.minimum_slot_utilization() && now_ns() < due) return {{}, due};

  Plan plan;
  for (const SequencePtr& one : slots)
    plan.rows.push_back(ready(one) && (one.get() == first || together(*first, *one)) ? one
                                                                                     : nullptr);
  while (!plan.rows.back()) plan.rows.pop_back();
  return plan;
}

SequenceRows::Plan SequenceRows::plan_oldest(const std::deque<SequencePtr>& line) const {
  if (line.empty()) return {};
  BatchPlan batch(rules_);
  for (const SequencePtr& one : line)
    if (!batch.add(*one->requests.front(), 1,
                   states_.together(states_of(*line.front()), states_of(*one))))
      break;
  const BatchPlan::Decision decision = batch.decide(now_ns());
  if (decision.count == 0) return {{}, decision.wait_until};
  return {{line.begin(), line.begin() + decision.count}, 0};
}

void SequenceRows::prepare(const Plan& plan, std::vector<RequestPtr>& batch) const {
  size_t first = 0;
  while (!batch[first]) ++first;
  for (RequestPtr& request : batch)
    if (!request) request = make_filler(*batch[first]);
  const SequenceStates::Values* like =
      batch[first]->sequence_start ? nullptr : plan.rows[first]->states.get();
  std::shared_ptr<SequenceStates::Values> zeros;
  for (size_t i = 0; i < batch.size() && !states_.empty(); ++i)
    if (batch[i]->filler && !zeros) zeros = states_.zeros(like);
  for (size_t i = 0; i < batch.size(); ++i) {
    Request& request = *batch[i];
    controls_.add(request);
    if (states_.empty()) continue;
    if (request.filler) {
      states_.attach(request, std::make_shared<SequenceStates::Values>(*zeros));
    } else {
      std::shared_ptr<SequenceStates::Values>& values = plan.rows[i]->states;
      if (request.sequence_start || !values) values = states_.initial();
      states_.attach(request, values);
    }
  }
}

}  // namespace anymps::server
