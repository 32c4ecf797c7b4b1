// SPDX-License-Identifier: Apache-2.0
// What is in the payload of a delegate, without converting it.
#pragma once

#include <map>
#include <string>

#include "formats/executorch/program/program.h"

namespace anymps::executorch {

struct PayloadInfo {
  std::map<std::string, size_t> kinds;  // "MPSConv2D" -> how many nodes
  size_t inputs = 0, outputs = 0;
  size_t constants = 0;
  uint64_t constant_bytes = 0;
};

PayloadInfo payload_info(const Source& payload);

}  // namespace anymps::executorch
