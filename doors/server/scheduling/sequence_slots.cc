// SPDX-License-Identifier: Apache-2.0
// A new sequence gets the lowest slot that is free in any lane, so that lanes fill evenly and
// batches stay short.
#include "server/scheduling/sequence_slots.h"

#include <algorithm>

namespace anymps::server {

SequenceSlots::SequenceSlots(size_t lanes, size_t slots_each)
    : slots_each_(slots_each), lanes_(lanes) {}

SequencePtr SequenceSlots::find(const SequenceId& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

SequencePtr SequenceSlots::begin(const SequenceId& id) {
  auto sequence = std::make_shared<Sequence>();
  sequence->id = id;
  by_id_[id] = sequence;
  size_t best = SIZE_MAX, best_slot = slots_each_;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const size_t slot = lanes_[i].free.empty() ? lanes_[i].slots.size() : *lanes_[i].free.begin();
    if (slot < best_slot) best = i, best_slot = slot;
  }
  if (best == SIZE_MAX)
    backlog_.push_back(sequence);
  else
    place(sequence, best, best_slot);
  return sequence;
}

void SequenceSlots::place(const SequencePtr& sequence, size_t lane, size_t slot) {
  Lane& to = lanes_[lane];
  if (slot == to.slots.size()) to.slots.emplace_back();
  to.free.erase(slot);
  to.slots[slot] = sequence;
  sequence->lane = lane;
  sequence->slot = slot;
}

void SequenceSlots::forget(Sequence& sequence) {
  const auto found = by_id_.find(sequence.id);
  if (found != by_id_.end() && found->second.get() == &sequence) by_id_.erase(found);
}

SequencePtr SequenceSlots::release(const SequencePtr& sequence) {
  forget(*sequence);
  if (sequence->lane == SIZE_MAX) {
    backlog_.erase(std::find(backlog_.begin(), backlog_.end(), sequence));
    return nullptr;
  }
  const size_t lane = sequence->lane, slot = sequence->slot;
  lanes_[lane].slots[slot] = nullptr;
  lanes_[lane].free.insert(slot);
  if (backlog_.empty()) return nullptr;
  SequencePtr next = backlog_.front();
  backlog_.pop_front();
  place(next, lane, slot);
  return next;
}

void SequenceSlots::clear(std::vector<RequestPtr>& requests) {
  const auto take = [&](const SequencePtr& sequence) {
    if (!sequence) return;
    for (RequestPtr& request : sequence->requests) requests.push_back(std::move(request));
    sequence->requests.clear();
  };
  for (Lane& lane : lanes_)
    for (const SequencePtr& sequence : lane.slots) take(sequence);
  for (const SequencePtr& sequence : backlog_) take(sequence);
  backlog_.clear();
  by_id_.clear();
}

}  // namespace anymps::server
