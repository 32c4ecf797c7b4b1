// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace anymps {

const char* name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kCorrupt:
      return "corrupt data";
    case Code::kIo:
      return "input/output error";
    case Code::kInternal:
      return "internal error";
    case Code::kCancelled:
      return "cancelled";
    case Code::kMismatch:
      return "numeric mismatch";
  }
  return "unknown";
}

}  // namespace anymps
