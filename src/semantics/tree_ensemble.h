// SPDX-License-Identifier: Apache-2.0
// What a node of a decision tree asks.
#pragma once

#include "base/error.h"

namespace anymps {

// Modes 0 to 5: <=, <, >=, >, ==, != the split.
inline bool branch_holds(int64_t mode, double x, double split) {
  switch (mode) {
    case 0:
      return x <= split;
    case 1:
      return x < split;
    case 2:
      return x >= split;
    case 3:
      return x > split;
    case 4:
      return x == split;
    case 5:
      return x != split;
    default:
      fail(Code::kInvalidArgument, "[tree_ensemble] mode {} of a node is not known", mode);
  }
}

}  // namespace anymps
