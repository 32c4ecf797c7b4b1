// SPDX-License-Identifier: Apache-2.0
// Which of the requests that wait go into the next batch, and when: the rules of Triton's dynamic
// batcher, which the sequence batcher's "oldest" strategy shares. Knows no threads and no queue.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model_config.pb.h"
#include "server/core/request.h"

namespace anymps::server {

class BatchRules {
 public:
  // `preferred` empty: max_batch_size is. `batching` false: every request is a separate batch.
  BatchRules(const inference::ModelConfig& config, bool batching,
             const google::protobuf::RepeatedField<int32_t>& preferred, uint64_t delay_us);

  bool batching() const { return batching_; }
  int64_t max_rows() const { return max_rows_; }
  uint64_t delay_us() const { return delay_us_; }
  const std::set<int64_t>& preferred() const { return preferred_; }
  int64_t rows(const Request& request) const;
  // Inputs have the same names, types and shapes (except for the batch axis and ragged inputs).
  bool together(const Request& a, const Request& b) const;

 private:
  bool batching_, has_batch_axis_;
  int64_t max_rows_;
  uint64_t delay_us_;
  std::set<int64_t> preferred_;
  std::set<std::string, std::less<>> ragged_, shape_tensors_;
};

// Is shown the requests that wait, in their order, and tells how many of them to run.
class BatchPlan {
 public:
  explicit BatchPlan(const BatchRules& rules) : rules_(rules) {}

  // False: it does not fit, and none behind it does. `alike`: what the rules do not see of it is
  // like that of the others.
  bool add(const Request& request, int64_t rows, bool alike = true);
  void skip() { ++shown_; }  // one that is taken but not run

  struct Decision {
    int64_t count = 0;        // of those shown; 0: wait
    uint64_t wait_until = 0;  // when the oldest has waited long enough
    int64_t wake_rows = 0;    // or when that many rows are there
  };
  Decision decide(uint64_t now) const;

 private:
  const BatchRules& rules_;
  const Request* first_ = nullptr;
  int64_t shown_ = 0, rows_ = 0, best_ = 0;
  uint64_t oldest_ = UINT64_MAX;
  bool full_ = false;
};

}  // namespace anymps::server
