// SPDX-License-Identifier: Apache-2.0
#include "base/container.h"

namespace anymps {

const char* name(Container container) {
  constexpr const char* kNames[kContainerCount] = {"tensor", "sequence", "optional",
                                                   "optional sequence", "maps"};
  const auto index = static_cast<int>(container);
  return index < kContainerCount ? kNames[index] : "invalid";
}

}  // namespace anymps
