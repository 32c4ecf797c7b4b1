// SPDX-License-Identifier: Apache-2.0
// Subnormal floats ("denormals": f32 below 1.2e-38), which many processors compute with a hundred
// times more slowly than with others. Whether a thread takes them for zeros is a matter of its
// control register, which this file alone reads and writes. docs/design.md, "Numbers", says which
// runs do.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace anymps {

enum class Denormals : uint8_t {
  kAsThread,  // as the thread has it that calls
  kKeep,
  kFlush,  // as operands and as results they are zeros
};

namespace float_control {

#if defined(__x86_64__)  // MXCSR; its lowest bits tell what has happened, the others what to do
using Word = uint32_t;
inline constexpr Word kFlush = 0x8040, kRounding = 0x6000;  // FTZ and DAZ
inline Word read() { return _mm_getcsr(); }
inline void write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)  // FPCR
using Word = uint64_t;
inline constexpr Word kFlush = Word{1} << 24, kRounding = Word{3} << 22;
inline Word read() {
  Word word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
inline void write(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
using Word = uint32_t;
inline constexpr Word kFlush = 0, kRounding = 0;
inline Word read() { return 0; }
inline void write(Word) {}
#endif

}  // namespace float_control

// The calling thread computes like this while it lives. Afterwards the whole register is what it
// was before.
class DenormalScope {
 public:
  explicit DenormalScope(Denormals mode) : sets_(mode != Denormals::kAsThread) {
    if (!sets_) return;
    before_ = float_control::read();
    const Word wanted = mode == Denormals::kFlush ? before_ | float_control::kFlush
                                                  : before_ & ~float_control::kFlush;
    if (wanted != before_) float_control::write(wanted);
  }
  ~DenormalScope() {
    if (sets_ && float_control::read() != before_) float_control::write(before_);
  }
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;

 private:
  using Word = float_control::Word;
  const bool sets_;
  Word before_ = 0;
};

inline bool flushes_denormals() {  // the calling thread
  return float_control::kFlush != 0 &&
         (float_control::read() & float_control::kFlush) == float_control::kFlush;
}

// What the numbers of a thread depend on, to be handed to another one that works for it.
class FloatMode {
 public:
  FloatMode() = default;
  static FloatMode of_thread() { return FloatMode(float_control::read() & kBits); }
  void apply() const {
    const float_control::Word now = float_control::read();
    if ((now & kBits) != word_) float_control::write((now & ~kBits) | word_);
  }

 private:
  static constexpr float_control::Word kBits = float_control::kFlush | float_control::kRounding;
  explicit FloatMode(float_control::Word word) : word_(word) {}
  float_control::Word word_ = 0;
};

// What an executable is asked for.
enum class DenormalOption : uint8_t {
  kDefault,  // what ANYMPS_DENORMALS says, else kFlush
  kFlush,
  kKeep,
  kAsCalls,  // as a call of a single op: what ANYMPS_DENORMALS says, else as the thread has it
};
Denormals resolve(DenormalOption option);

}  // namespace anymps
