// SPDX-License-Identifier: Apache-2.0
// Elementwise calls that wait to run as one pass over their elements. All results have one shape. A
// place is a tensor in memory that they read or write: a call that reads what another has written
// takes the value, a place that is written again is stored once, and two places that share memory
// without being the same never meet in a window, unless both are only read. So the calls may run
// element by element, all of them for one tile after the other.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "memory/buffer.h"
#include "runtime/eager/entry.h"

namespace anymps {

// An op that makes a tensor of one value: its last input, or else the attribute of that name.
inline bool fills(const Op& op) { return op.is(kMoves) && op.required_inputs() == 0; }
// Whether a call may wait, as far as that follows from the op: the elements of its inputs say
// nothing about the result's shape.
inline bool may_wait(const Op& op, std::span<const TensorView> inputs) {
  return op.is(kElementwise) || (fills(op) && (inputs.empty() || inputs[0].absent()));
}

class CallWindow {
 public:
  static constexpr int kMostCalls = 24, kMostPlaces = 48, kMostInputs = 6;

  struct Place {
    const TensorDesc* desc = nullptr;             // of an entry in the window
    char* data = nullptr;                         // its first element
    const char *begin = nullptr, *end = nullptr;  // the bytes it reaches; none: read at the call
    const void* origin = nullptr;                 // then: from here
    bool read = false;  // before any call writes it: the pass needs it in memory
    bool written = false;
    bool dropped = false;  // nobody can see any more what is written
  };
  struct Call {
    std::shared_ptr<EagerEntry> entry;
    uint64_t op = 0;                               // of the bound op; 0: none
    std::array<uint8_t, kMostInputs> inputs = {};  // places; kAbsent: an absent input
    uint8_t output = 0;
    uint16_t parameters = 0;  // where its parameters begin
  };
  static constexpr uint8_t kAbsent = 0xff;

  CallWindow() = default;
  CallWindow(const CallWindow&) = delete;
  CallWindow& operator=(const CallWindow&) = delete;

  bool empty() const { return size_ == 0; }
  int size() const { return size_; }
  // The entry that the next call has if it is the one that came at this place in the window before;
  // else null. A loop then needs no look-ups.
  const std::shared_ptr<EagerEntry>* expected(const BoundOp& op, std::span<const TensorView> inputs,
                                              std::span<const TensorView> outputs) const;
  // False, and nothing is changed: there is no room, or the call cannot run beside the others. In
  // an empty window: it cannot wait at all, for its output overlaps an input.
  bool add(const std::shared_ptr<EagerEntry>& entry, const BoundOp& op,
           std::span<const TensorView> inputs, const TensorView& output,
           std::span<const double> parameters);
  void clear();  // remembers the calls

  // Memory that is about to go: what is stored there need not be. True: calls still read from it.
  bool drop(const void* memory, size_t bytes);
  // Memory that stays until the calls have run, and is dropped when nobody else has it by then.
  // False: there is no room.
  bool keep(const BufferRef& buffer);
  void drop_unseen();

  std::span<const Call> calls() const { return {calls_.data(), static_cast<size_t>(size_)}; }
  std::span<const Place> places() const { return {places_.data(), static_cast<size_t>(count_)}; }
  std::span<const double> parameters() const {
    return {parameters_.data(), static_cast<size_t>(parameter_count_)};
  }
  static bool stored(const Place& place) { return place.written && !place.dropped; }
  bool stores() const;
  // All that the pass follows from: the calls' entries, how places connect them, what is stored. To
  // be called once, when all of that is there.
  const EagerKey& finish_key();

 private:
  static constexpr int kMostParameters = 64, kMostBuffers = 64;
  struct alignas(16) Element {
    std::byte bytes[16];
  };

  int find(const EagerEntry& entry, size_t i, const TensorView& input);
  int find(const Place& wanted, bool writes);
  int add_place(const Place& place);

  int size_ = 0, count_ = 0, parameter_count_ = 0, buffer_count_ = 0;
  std::array<Call, kMostCalls> calls_;
  std::array<Place, kMostPlaces> places_;
  std::array<Element, kMostPlaces> elements_;  // of places that were read at the call
  std::array<double, kMostParameters> parameters_;
  std::array<BufferRef, kMostBuffers> buffers_;
  EagerKey key_;
};

}  // namespace anymps
