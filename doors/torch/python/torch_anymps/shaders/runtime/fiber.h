// SPDX-License-Identifier: Apache-2.0
// A stack of its own for each thread of a threadgroup whose threads wait for each other. Switching
// saves the registers that a function must keep, and nothing else.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "shaders with barriers run on x86-64 and AArch64"
#endif

extern "C" void anymps_fiber_switch(void** save, void* load);

#if defined(__x86_64__)
asm(R"(
  .text
  .globl anymps_fiber_switch
  .hidden anymps_fiber_switch
  .type anymps_fiber_switch, @function
anymps_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size anymps_fiber_switch, .-anymps_fiber_switch
)");
#else
asm(R"(
  .text
  .globl anymps_fiber_switch
  .hidden anymps_fiber_switch
  .type anymps_fiber_switch, %function
anymps_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size anymps_fiber_switch, .-anymps_fiber_switch
)");
#endif

namespace anymps_shader {

// Stacks are only touched where they are used, so that their size costs addresses and no memory.
constexpr size_t kStackBytes = 256 * 1024;
constexpr uint64_t kStackMark = 0x616e796d70733031;

class Stacks {
 public:
  ~Stacks() {
    if (memory_ != nullptr) munmap(memory_, count_ * kStackBytes);
  }
  // Room for `count` stacks; false where there is no memory.
  bool reserve(size_t count) {
    if (count <= count_) return true;
    if (memory_ != nullptr) munmap(memory_, count_ * kStackBytes);
    count_ = 0;
    void* memory = mmap(nullptr, count * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
    if (memory_ == nullptr) return false;
    madvise(memory_, count * kStackBytes, MADV_NOHUGEPAGE);
    count_ = count;
    for (size_t i = 0; i < count; ++i)
      std::memcpy(memory_ + i * kStackBytes, &kStackMark, sizeof(kStackMark));
    return true;
  }
  // A stack that enters `entry`, which never returns. The tops are shifted against each other: with
  // equal low bits of the address they would all contend for the same lines of the cache.
  void* start(size_t at, void (*entry)()) {
    char* top = memory_ + (at + 1) * kStackBytes - (at * 1088 % 32768 & ~size_t{15});
#if defined(__x86_64__)
    void** stack = reinterpret_cast<void**>(top) - 8;
    stack[6] = reinterpret_cast<void*>(entry);
    stack[7] = nullptr;
#else
    void** stack = reinterpret_cast<void**>(top) - 20;
    stack[11] = reinterpret_cast<void*>(entry);
#endif
    return stack;
  }
  // Whether a thread needed more than its stack has.
  bool overflown(size_t count) const {
    for (size_t i = 0; i < count; ++i)
      if (std::memcmp(memory_ + i * kStackBytes, &kStackMark, sizeof(kStackMark)) != 0) return true;
    return false;
  }

 private:
  char* memory_ = nullptr;
  size_t count_ = 0;
};

}  // namespace anymps_shader
