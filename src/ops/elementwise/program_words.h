// SPDX-License-Identifier: Apache-2.0
// How a program lies in the integers of a node's attribute, for the writer (program_builder.cc) and
// the reader (elementwise_program.cc). Ops and attributes go by name, so a program in a file means
// the same whatever the op table holds. Each group is one word unless it says otherwise, and bits
// that no field has are 0:
//   program      version 16 | instructions 16 | outputs 16, then these in turn
//   instruction  words of the op's name 8 | arguments 8 | attributes 8, then these in turn
//   argument     kind 8 | dtype + 1, or 0 if not given, 8 | index 16 | element 16; an immediate has
//                its f64 after it
//   attribute    form 8 | words of its name 8 | words of its value 8, the name, the value
//   output       the number of the instruction that makes it
// Text is packed eight bytes to a word, the first lowest, with zeros at the end.
#pragma once

#include <cstdint>

namespace anymps::program_words {

inline constexpr uint64_t kVersion = 1;
inline constexpr uint64_t kMaxTextWords = 8;

// What an attribute's value is. These numbers and those of ProgramArg::Kind never change.
enum class AttrForm : uint8_t { kInt = 0, kFloat = 1, kString = 2, kParameter = 3 };

// Puts fields into a word and takes them out, lowest first.
class WordWriter {
 public:
  WordWriter& field(uint64_t value, int bits) {
    word_ |= value << at_;
    at_ += bits;
    return *this;
  }
  int64_t word() const { return static_cast<int64_t>(word_); }

 private:
  uint64_t word_ = 0;
  int at_ = 0;
};

class WordReader {
 public:
  explicit WordReader(int64_t word) : rest_(static_cast<uint64_t>(word)) {}
  uint64_t field(int bits) {
    const uint64_t value = rest_ & ((uint64_t{1} << bits) - 1);
    rest_ >>= bits;
    return value;
  }
  bool empty() const { return rest_ == 0; }  // what no field has taken

 private:
  uint64_t rest_;
};

}  // namespace anymps::program_words
