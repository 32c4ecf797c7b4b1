// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <iterator>

namespace anymps {

const char* name(Code code) {
  static constexpr const char* kNames[] = {
      "ok",           "invalid argument",   "not found",      "unsupported", "out of memory",
      "corrupt data", "input/output error", "internal error", "cancelled",   "numeric mismatch"};
  static_assert(std::size(kNames) == static_cast<size_t>(Code::kMismatch) + 1);
  const auto place = static_cast<size_t>(code);
  return place < std::size(kNames) ? kNames[place] : "unknown";
}

}  // namespace anymps
