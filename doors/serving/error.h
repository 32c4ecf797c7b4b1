// SPDX-License-Identifier: Apache-2.0
// Errors of serving. The codes are those of Triton, in its order: the backend hands them on as they
// are, the server maps them to HTTP and gRPC.
#pragma once

#include <stdexcept>
#include <string>

namespace anymps::serving {

enum class Code {
  kUnknown,
  kInternal,
  kNotFound,
  kInvalidArgument,
  kUnavailable,
  kUnsupported,
  kAlreadyExists,
  kCancelled,
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// What somebody wrote is wrong.
[[noreturn]] inline void refuse(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}
inline void check(bool good, const std::string& message) {
  if (!good) refuse(message);
}

}  // namespace anymps::serving
