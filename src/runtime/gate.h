// SPDX-License-Identifier: Apache-2.0
// A gate that lets many in, or one alone. Who wants to be alone waits until all have left, and
// those who come meanwhile wait behind him: runs that overlap without a pause cannot keep a refresh
// out, as they would with std::shared_mutex.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/fork.h"

namespace anymps {

class Gate {
 public:
  // One of many. Not for a thread that is inside already.
  class Inside {
   public:
    explicit Inside(Gate* gate) : gate_(gate) {  // null: there is no gate
      if (gate_) gate_->enter();
    }
    ~Inside() {
      if (gate_) gate_->leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Gate* gate_;
  };

  class Alone {
   public:
    explicit Alone(Gate& gate) : gate_(gate) { gate_.enter_alone(); }
    ~Alone() { gate_.leave_alone(); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    Gate& gate_;
  };

  Gate() = default;

 private:
  void enter();
  void leave();
  void enter_alone();
  void leave_alone();
  void in_child();

  std::condition_variable changed_;
  int64_t inside_ = 0, waiting_ = 0;  // many; those who want to be alone
  bool alone_ = false;
  bool torn_ = false;  // the process forked while another thread was alone
  ForkMutex mutex_{ForkMutex::kShort, [this](bool) { in_child(); }};
};

}  // namespace anymps
