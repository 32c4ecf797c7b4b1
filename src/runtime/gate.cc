// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate.h"

#include <memory>

#include "base/error.h"

namespace anymps {

void Gate::enter() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !alone_ && waiting_ == 0; });
  require(!torn_, "[run] the process was forked while the constants were being refreshed");
  ++inside_;
}

void Gate::leave() {
  std::lock_guard lock(mutex_);
  if (inside_ > 0 && --inside_ > 0) return;  // 0: the thread forked while it was inside
  changed_.notify_all();
}

void Gate::enter_alone() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_;
  changed_.wait(lock, [&] { return !alone_ && inside_ == 0; });
  --waiting_;
  require(!torn_, "[refresh] the process was forked while the constants were being refreshed");
  alone_ = true;
}

void Gate::leave_alone() {
  std::lock_guard lock(mutex_);
  alone_ = false;
  changed_.notify_all();
}

// The threads that were inside are not in the child; one that was alone has left things half done.
void Gate::in_child() {
  std::construct_at(&changed_);
  torn_ = torn_ || alone_;
  inside_ = waiting_ = 0;
  alone_ = false;
}

}  // namespace anymps
