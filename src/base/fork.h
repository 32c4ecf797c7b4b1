// SPDX-License-Identifier: Apache-2.0
// What threads share, in a process that forks. A child has the forking thread alone: a mutex that
// another thread held would stay locked there, and what it guards half changed. The one handler of
// fork() is here, and all that outlives a call is guarded by a ForkMutex.
#pragma once

#include <functional>
#include <mutex>

namespace anymps {

// A mutex that is free in a forked child. Locking and unlocking are those of std::mutex.
class ForkMutex : public std::mutex {
 public:
  // kShort: fork() waits until no other thread holds it, so what it guards is whole in the child.
  // kLong: held while kernels are made or while code of others runs; fork() does not wait.
  enum Hold { kShort, kLong };
  // Called in the child before fork() returns, when all of these mutexes are free. `whole`: nobody
  // held it when the process forked. Condition variables and threads that belong to the parent are
  // to be made again in place, for their destructors would wait. It must not call code of others. A
  // mutex with such a function is the last member: it goes first, and comes when all is there.
  using InChild = std::function<void(bool whole)>;

  explicit ForkMutex(Hold hold = kShort, InChild in_child = nullptr);
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

 private:
  friend class ForkHandler;

  const Hold hold_;
  bool taken_ = false;  // by the handler
  const InChild in_child_;
  ForkMutex *before_ = nullptr, *after_ = nullptr;  // in the handler's list
};

// How many forks lie between this process and the one that loaded the library. What waits for a
// thread of an earlier process waits in vain.
unsigned fork_generation() noexcept;

}  // namespace anymps
