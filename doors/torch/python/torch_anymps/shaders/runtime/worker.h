// SPDX-License-Identifier: Apache-2.0
// Runs threadgroups on one thread of the machine, one after the other.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "../include/anymps_metal/runtime.h"
#include "fiber.h"

namespace anymps_shader {

// What a launch answers; library.py has the messages.
enum Result { kDone, kNoMemory, kStackOverflow, kTooMuchThreadgroupMemory, kUnexpectedWait };

constexpr size_t kThreadgroupBytes = 32768;  // what Apple's GPUs have

class Worker {
 public:
  static Worker*& current() {
    static thread_local Worker* worker = nullptr;
    return worker;
  }
  // This thread's own.
  static Worker& mine() {
    static thread_local std::unique_ptr<Worker> worker;
    if (worker == nullptr) worker = std::make_unique<Worker>();
    return *worker;
  }

  Result run(const Entry& entry, const Launch& launch, long first, long last) {
    Worker* const outer = std::exchange(current(), this);
    result_ = kDone;
    slots_.clear();
    used_ = 0;
    if (entry.range != nullptr) {
      entry.range(&launch, first, last);
    } else {
      run_waiting(entry, launch, first, last);
    }
    current() = outer;
    return result_;
  }

  static void barrier() {
    Worker* worker = current();
    if (worker->running_ == nullptr) return worker->fail(kUnexpectedWait);
    worker->wait(kAtBarrier);
  }

  static Simd* meet(const void* value, unsigned bytes, int site) {
    Worker* worker = current();
    Fiber* fiber = worker->running_;
    if (fiber == nullptr) return worker->lone(value, bytes);
    Simd& simd = worker->simds_[fiber->index / kSimdWidth];
    if (value != nullptr) {
      std::memcpy(simd.in[simd.lane], value, bytes);
      fiber->site = site;
      worker->wait(kAtSite);
    }
    return &simd;
  }

  static void* threadgroup(int slot, unsigned long bytes) {
    Worker* worker = current();
    if (static_cast<size_t>(slot) >= worker->slots_.size()) worker->slots_.resize(slot + 1);
    void*& place = worker->slots_[slot];
    if (place == nullptr) place = worker->take(bytes);
    return place;
  }

 private:
  enum State : unsigned char { kReady, kAtBarrier, kAtSite, kEnded };
  struct Fiber {
    void* stack;
    int index;
    int site;
    State state;
    unsigned local[3];
  };

  void fail(Result result) { result_ = result; }

  // A kernel that was taken for one that does not wait: the caller gets an error, and its own value
  // until then.
  Simd* lone(const void* value, unsigned bytes) {
    fail(kUnexpectedWait);
    simds_.resize(1);
    simds_[0].active = 1;
    simds_[0].lane = 0;
    simds_[0].reduced = false;
    if (value != nullptr) std::memcpy(simds_[0].out[0], value, bytes);
    return &simds_[0];
  }

  void* take(size_t bytes) {
    const size_t begin = (used_ + 31) & ~size_t{31};
    if (bytes > kThreadgroupBytes || begin + bytes > kThreadgroupBytes) {
      fail(kTooMuchThreadgroupMemory);
      spare_.push_back(std::make_unique<char[]>(bytes + 64));
      return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(spare_.back().get()) + 63) &
                                     ~uintptr_t{63});
    }
    used_ = begin + bytes;
    return memory_ + begin;
  }

  void wait(State state) {
    running_->state = state;
    anymps_fiber_switch(&running_->stack, scheduler_);
  }

  // The first function on a fiber's stack.
  static void enter() {
    Worker* worker = current();
    worker->entry_->thread(worker->launch_, &worker->group_, worker->running_->local);
    worker->wait(kEnded);
    std::abort();  // an ended fiber is not resumed
  }

  void run_waiting(const Entry& entry, const Launch& launch, long first, long last) {
    const size_t most = size_t{launch.group[0]} * launch.group[1] * launch.group[2];
    if (!stacks_.reserve(most)) return fail(kNoMemory);
    if (fibers_.size() < most) fibers_.resize(most);
    if (simds_.size() * kSimdWidth < most) simds_.resize((most + kSimdWidth - 1) / kSimdWidth);
    entry_ = &entry;
    launch_ = &launch;
    for (long number = first; number < last && result_ == kDone; ++number) {
      group_ = group_of(launch, number);
      run_group();
    }
    running_ = nullptr;
    spare_.clear();
    if (stacks_.overflown(most)) fail(kStackOverflow);
  }

  void run_group() {
    int count = 0;
    for (unsigned z = 0; z < group_.size[2]; ++z)
      for (unsigned y = 0; y < group_.size[1]; ++y)
        for (unsigned x = 0; x < group_.size[0]; ++x, ++count)
          fibers_[count] = {stacks_.start(count, &Worker::enter), count, 0, kReady, {x, y, z}};
    for (bool alive = true; alive;) {
      alive = false;
      for (int first = 0; first < count; first += kSimdWidth)
        alive |= run_simdgroup(first, std::min(count, first + kSimdWidth));
      for (int i = 0; i < count; ++i)
        if (fibers_[i].state == kAtBarrier) fibers_[i].state = kReady;
    }
  }

  // Runs the lanes until each is at a barrier or has ended; whether any is alive. Lanes at
  // different sites are in different branches: those at the earliest go on first, without the
  // others.
  bool run_simdgroup(int first, int last) {
    Simd& simd = simds_[first / kSimdWidth];
    for (;;) {
      int site = -1;
      bool alive = false;
      for (int i = first; i < last; ++i) {
        Fiber& fiber = fibers_[i];
        if (fiber.state == kReady) {
          running_ = &fiber;
          simd.lane = i - first;
          anymps_fiber_switch(&scheduler_, fiber.stack);
        }
        alive |= fiber.state != kEnded;
        if (fiber.state == kAtSite && (site < 0 || fiber.site < site)) site = fiber.site;
      }
      if (site < 0) return alive;
      simd.active = 0;
      simd.reduced = false;
      for (int i = first; i < last; ++i) {
        Fiber& fiber = fibers_[i];
        if (fiber.state != kAtSite || fiber.site != site) continue;
        fiber.state = kReady;
        simd.active |= 1ul << (i - first);
        std::memcpy(simd.out[i - first], simd.in[i - first], kSharedBytes);
      }
    }
  }

  Result result_ = kDone;
  const Entry* entry_ = nullptr;
  const Launch* launch_ = nullptr;
  Group group_ = {};
  Fiber* running_ = nullptr;
  void* scheduler_ = nullptr;
  Stacks stacks_;
  std::vector<Fiber> fibers_;
  std::vector<Simd> simds_;
  std::vector<void*> slots_;
  std::vector<std::unique_ptr<char[]>> spare_;
  size_t used_ = 0;
  alignas(64) char memory_[kThreadgroupBytes];
};

}  // namespace anymps_shader
