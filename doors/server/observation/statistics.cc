// SPDX-License-Identifier: Apache-2.0
// Durations are counted as Triton counts them: `success` and `queue` with cached answers, the parts
// of the computation without; every request of a batch has the durations of the whole batch.
#include "server/observation/statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "server/core/clock.h"

namespace anymps::server {
namespace {

uint64_t between(uint64_t begin, uint64_t end) { return begin && end > begin ? end - begin : 0; }

uint64_t epoch_ms() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

uint64_t whole(const Timestamps& times) {
  const uint64_t begin = times.received ? times.received : times.queued;
  return between(begin, times.answered ? times.answered : now_ns());
}

uint64_t waited(const Timestamps& times, uint64_t fallback) {
  const uint64_t end = times.compute_start ? times.compute_start
                       : times.dequeued    ? times.dequeued
                                           : fallback;
  return between(times.queued, end);
}

void print(inference::StatisticDuration* out, uint64_t count, uint64_t ns) {
  out->set_count(count);
  out->set_ns(ns);
}

}  // namespace

void ModelMetrics::success(const Timestamps& times, uint64_t batch_size) {
  const uint64_t request_ns = whole(times), now_ms = epoch_ms();
  std::lock_guard lock(mutex_);
  success_.add(request_ns);
  queue_.add(waited(times, 0));
  input_.add(between(times.compute_start, times.compute_input_end));
  infer_.add(between(times.compute_input_end, times.compute_output_start));
  output_.add(between(times.compute_output_start, times.compute_end));
  inferences_ += batch_size;
  last_inference_ms_ = std::max(last_inference_ms_, now_ms);
  recent_ms_[recent_++ % recent_ms_.size()] = static_cast<float>(request_ns) * 1e-6f;
}

void ModelMetrics::failure(const Timestamps& times, Code code) {
  const uint64_t request_ns = whole(times);
  std::lock_guard lock(mutex_);
  fail_.add(request_ns);
  ++failures_[code];
}

void ModelMetrics::execution(uint64_t batch_size, uint64_t input_ns, uint64_t infer_ns,
                             uint64_t output_ns) {
  std::lock_guard lock(mutex_);
  ++executions_;
  Batch& batch = batches_[batch_size];
  batch.input.add(input_ns);
  batch.infer.add(infer_ns);
  batch.output.add(output_ns);
}

void ModelMetrics::cache_hit(const Timestamps& times, uint64_t lookup_ns, uint64_t) {
  const uint64_t request_ns = whole(times), now_ms = epoch_ms();
  std::lock_guard lock(mutex_);
  success_.add(request_ns);
  queue_.add(waited(times, 0));
  hit_.add(lookup_ns);
  last_inference_ms_ = std::max(last_inference_ms_, now_ms);
  recent_ms_[recent_++ % recent_ms_.size()] = static_cast<float>(request_ns) * 1e-6f;
}

void ModelMetrics::cache_miss(uint64_t lookup_and_insert_ns) {
  std::lock_guard lock(mutex_);
  miss_.add(lookup_and_insert_ns);
}

inference::ModelStatistics ModelMetrics::read() const {
  inference::ModelStatistics result;
  std::lock_guard lock(mutex_);
  result.set_last_inference(last_inference_ms_);
  result.set_inference_count(inferences_);
  result.set_execution_count(executions_);
  inference::InferStatistics* totals = result.mutable_inference_stats();
  print(totals->mutable_success(), success_.count, success_.ns);
  print(totals->mutable_fail(), fail_.count, fail_.ns);
  print(totals->mutable_queue(), queue_.count, queue_.ns);
  print(totals->mutable_compute_input(), input_.count, input_.ns);
  print(totals->mutable_compute_infer(), infer_.count, infer_.ns);
  print(totals->mutable_compute_output(), output_.count, output_.ns);
  print(totals->mutable_cache_hit(), hit_.count, hit_.ns);
  print(totals->mutable_cache_miss(), miss_.count, miss_.ns);
  for (const auto& [size, batch] : batches_) {
    inference::InferBatchStatistics* out = result.add_batch_stats();
    out->set_batch_size(size);
    print(out->mutable_compute_input(), batch.input.count, batch.input.ns);
    print(out->mutable_compute_infer(), batch.infer.count, batch.infer.ns);
    print(out->mutable_compute_output(), batch.output.count, batch.output.ns);
  }
  return result;
}

std::array<double, 3> ModelMetrics::latency_ms(const std::array<double, 3>& quantiles) const {
  std::vector<float> recent;
  {
    std::lock_guard lock(mutex_);
    recent.assign(recent_ms_.begin(),
                  recent_ms_.begin() + std::min<int64_t>(recent_, std::ssize(recent_ms_)));
  }
  std::array<double, 3> result{};
  if (recent.empty()) return result;
  std::sort(recent.begin(), recent.end());
  for (size_t i = 0; i < result.size(); ++i) {
    const double place =
        std::clamp(quantiles[i], 0.0, 1.0) * static_cast<double>(recent.size() - 1);
    result[i] = recent[std::lround(place)];
  }
  return result;
}

std::map<Code, uint64_t> ModelMetrics::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace anymps::server
