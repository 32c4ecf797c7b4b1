// SPDX-License-Identifier: Apache-2.0
// The rows of a batch of sequences: which sequences are in it, when it is run, and what the model
// is given beside what the clients sent. "Direct": a sequence is always the same row of the batch,
// rows in between that have no request are filled with zeros. "Oldest": the requests that have
// waited longest, at most one of each sequence, in any row.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "server/scheduling/batch_plan.h"
#include "server/scheduling/sequence_controls.h"
#include "server/scheduling/sequence_slots.h"
#include "server/scheduling/sequence_states.h"
#include "serving/reach.h"

namespace anymps::server {

class SequenceRows {
 public:
  // Throws kInvalidArgument with Triton's wording if the configuration is wrong.
  SequenceRows(const inference::ModelConfig& config, const serving::ModelDir& model_dir);

  bool oldest() const { return oldest_; }
  size_t slots_each() const { return slots_each_; }  // sequences that an instance has at once
  // Why a request cannot be part of a batch; "" if it can.
  std::string refusal(const Request& request) const;

  struct Plan {
    std::vector<SequencePtr> rows;  // null: a filler; empty: wait
    uint64_t wait_until = 0;        // 0: until something comes
  };
  Plan plan_direct(const std::vector<SequencePtr>& slots) const;
  Plan plan_oldest(const std::deque<SequencePtr>& line) const;

  // Makes the fillers and adds controls and states to the requests of these rows.
  void prepare(const Plan& plan, std::vector<RequestPtr>& batch) const;

 private:
  bool together(const Sequence& a, const Sequence& b) const;

  const bool oldest_;
  const inference::ModelSequenceBatching::StrategyDirect direct_;
  const size_t slots_each_;
  const BatchRules rules_;
  const SequenceControls controls_;
  const SequenceStates states_;
};

}  // namespace anymps::server
