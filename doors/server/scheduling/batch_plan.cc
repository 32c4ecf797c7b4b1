// SPDX-License-Identifier: Apache-2.0
// A preferred size that is reached is run at once. Without one the batch waits for more until its
// oldest request has waited `max_queue_delay_microseconds`, then all that fit are run.
#include "server/scheduling/batch_plan.h"

#include <algorithm>
#include <cstring>

#include "server/core/clock.h"

namespace anymps::server {
namespace {

bool same_bytes(const InputTensor& a, const InputTensor& b) {
  size_t at = 0, bt = 0, ai = 0, bi = 0;
  while (true) {
    while (ai < a.buffers.size() && at == a.buffers[ai].bytes) ++ai, at = 0;
    while (bi < b.buffers.size() && bt == b.buffers[bi].bytes) ++bi, bt = 0;
    if (ai == a.buffers.size() || bi == b.buffers.size())
      return ai == a.buffers.size() && bi == b.buffers.size();
    const size_t n = std::min(a.buffers[ai].bytes - at, b.buffers[bi].bytes - bt);
    if (std::memcmp(a.buffers[ai].data + at, b.buffers[bi].data + bt, n) != 0) return false;
    at += n, bt += n;
  }
}

}  // namespace

BatchRules::BatchRules(const inference::ModelConfig& config, bool batching,
                       const google::protobuf::RepeatedField<int32_t>& preferred, uint64_t delay_us)
    : batching_(batching && config.max_batch_size() > 0),
      has_batch_axis_(config.max_batch_size() > 0),
      max_rows_(std::max(1, config.max_batch_size())),
      delay_us_(delay_us) {
  for (int32_t size : preferred)
    if (size > 0) preferred_.insert(size);
  if (preferred_.empty()) preferred_.insert(max_rows_);
  for (const inference::ModelInput& input : config.input()) {
    if (input.allow_ragged_batch()) ragged_.insert(input.name());
    if (input.is_shape_tensor()) shape_tensors_.insert(input.name());
  }
}

int64_t BatchRules::rows(const Request& request) const {
  if (!has_batch_axis_) return 1;
  for (const InputTensor& input : request.inputs)
    if (!input.shape.empty() && (shape_tensors_.empty() || !shape_tensors_.contains(input.name)))
      return std::max<int64_t>(1, input.shape[0]);
  return 1;
}

bool BatchRules::together(const Request& a, const Request& b) const {
  if (a.inputs.size() != b.inputs.size()) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const InputTensor& x = a.inputs[i];
    const InputTensor* y = &b.inputs[i];
    if (y->name != x.name) {
      const auto found =
          std::find_if(b.inputs.begin(), b.inputs.end(),
                       [&](const InputTensor& other) { return other.name == x.name; });
      if (found == b.inputs.end()) return false;
      y = &*found;
    }
    if (x.dtype != y->dtype) return false;
    if (!shape_tensors_.empty() && shape_tensors_.contains(x.name)) {
      if (x.shape != y->shape || !same_bytes(x, *y)) return false;
      continue;
    }
    if (!ragged_.empty() && ragged_.contains(x.name)) continue;
    const int skip = has_batch_axis_ && !x.shape.empty() ? 1 : 0;
    if (x.shape.size() != y->shape.size() ||
        !std::equal(x.shape.begin() + skip, x.shape.end(), y->shape.begin() + skip))
      return false;
  }
  return true;
}

bool BatchPlan::add(const Request& request, int64_t rows, bool alike) {
  if (first_) {
    if (rows_ + rows > *rules_.preferred().rbegin() && best_ == 0) best_ = shown_;
    if (!alike || !rules_.batching() || rows_ + rows > rules_.max_rows() ||
        !rules_.together(*first_, request)) {
      full_ = true;
      return false;
    }
  } else {
    first_ = &request;
  }
  rows_ += rows;
  ++shown_;
  oldest_ = std::min(oldest_, request.times.queued);
  if (rules_.preferred().contains(rows_)) best_ = shown_;
  return true;
}

BatchPlan::Decision BatchPlan::decide(uint64_t now) const {
  if (!first_ || !rules_.batching()) return {shown_, 0, 0};
  const uint64_t delay = rules_.delay_us();
  const uint64_t due = after_us(oldest_, delay);
  const bool late = delay != 0 && now >= due;
  if (best_ != 0 && !late) return {best_, 0, 0};
  if (full_ || late || delay == 0 || rows_ >= *rules_.preferred().rbegin()) return {shown_, 0, 0};
  const auto next = rules_.preferred().upper_bound(rows_);
  return {0, due, next == rules_.preferred().end() ? rules_.max_rows() : *next};
}

}  // namespace anymps::server
