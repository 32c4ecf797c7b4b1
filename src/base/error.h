// SPDX-License-Identifier: Apache-2.0
// The one exception type of the engine. Every C boundary turns it into a status and a message.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace anymps {

// The numbers are part of the C ABI (amps_status) and never change.
enum class Code : int {
  kOk = 0,
  kInvalidArgument = 1,  // the caller's shape, attribute, dtype or option is wrong
  kNotFound = 2,         // no such op, value, file, device
  kUnsupported = 3,      // valid, but not implemented
  kOutOfMemory = 4,
  kCorrupt = 5,  // a file's content is broken or hostile
  kIo = 6,       // the operating system refused
  kInternal = 7,
  kCancelled = 8,
  kMismatch = 9,  // ANYMPS_CHECK found a wrong number
};

const char* name(Code code);

class Error : public std::runtime_error {
 public:
  Error(Code code, std::string message) : std::runtime_error(std::move(message)), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// Throws an Error with a formatted message. Messages start with the op or part in brackets:
// fail(Code::kInvalidArgument, "[softmax] axis {} is out of range for rank {}", axis, rank).
template <typename... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    fail(Code::kInvalidArgument, format, std::forward<Args>(args)...);
}

}  // namespace anymps
