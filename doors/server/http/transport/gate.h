// SPDX-License-Identifier: Apache-2.0
// Who may connect: a bound on the connections of a port, and on how far clients may use up the
// file descriptors of the process, which it also needs to load models and to write its log.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <utility>

namespace anymps::server::http {

class Gate {
 public:
  explicit Gate(size_t most = std::numeric_limits<size_t>::max());

  // A place for a connection, given back when this ends.
  class Place {
   public:
    Place() = default;
    explicit Place(Gate* gate) : gate_(gate) {}
    Place(Place&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Place() {
      if (gate_) gate_->open_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    Gate* gate_ = nullptr;
  };

  enum class Verdict {
    kWelcome,
    kFull,  // there is room to say so
    kDrop   // not even that
  };
  // Of a connection with this descriptor.
  std::pair<Verdict, Place> enter(int fd);

 private:
  const size_t most_;
  int full_from_, drop_from_;  // descriptors
  std::atomic<size_t> open_{0};
};

}  // namespace anymps::server::http
