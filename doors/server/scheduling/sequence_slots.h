// SPDX-License-Identifier: Apache-2.0
// Which sequences there are, which of them have a slot of an instance, and which wait in the
// backlog. Its owner holds a lock around every call.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "server/core/request.h"
#include "server/scheduling/sequence_states.h"

namespace anymps::server {

struct Sequence {
  SequenceId id;
  std::deque<RequestPtr> requests;
  bool running = false;              // one of its requests is in the instance
  bool candidate = false;            // is in the line of its lane
  size_t lane = SIZE_MAX, slot = 0;  // SIZE_MAX: in the backlog
  uint64_t idle_since = 0;           // when its last request was done
  uint64_t expires = UINT64_MAX;     // in the backlog: when it has waited too long
  std::shared_ptr<SequenceStates::Values> states;
};
using SequencePtr = std::shared_ptr<Sequence>;

class SequenceSlots {
 public:
  SequenceSlots(size_t lanes, size_t slots_each);

  // The sequence that this id names, or null.
  SequencePtr find(const SequenceId& id) const;
  // A new one, in a free slot or at the end of the backlog.
  SequencePtr begin(const SequenceId& id);
  // The id names it no longer; it keeps its slot.
  void forget(Sequence& sequence);
  // Frees its slot or takes it out of the backlog. Returns the sequence of the backlog that has the
  // slot now, or null.
  SequencePtr release(const SequencePtr& sequence);

  // Those of a lane by slot; null where there is none.
  const std::vector<SequencePtr>& lane(size_t index) const { return lanes_[index].slots; }
  size_t lanes() const { return lanes_.size(); }
  const std::deque<SequencePtr>& backlog() const { return backlog_; }
  void clear(std::vector<RequestPtr>& requests);

 private:
  struct Lane {
    std::vector<SequencePtr> slots;  // as many as were ever in use at once
    std::set<size_t> free;           // of these
  };
  void place(const SequencePtr& sequence, size_t lane, size_t slot);

  size_t slots_each_;
  std::vector<Lane> lanes_;
  std::map<SequenceId, SequencePtr> by_id_;
  std::deque<SequencePtr> backlog_;
};

}  // namespace anymps::server
