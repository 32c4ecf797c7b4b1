// SPDX-License-Identifier: Apache-2.0
// An ETDump: what ExecuTorch's Inspector reads, a FlatBuffer "ED00" with blocks of events. Times
// are in nanoseconds. Elements of recorded tensors lie in a separate file, the debug buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/npy.h"

namespace anymps::runner {

struct ProfileEvent {
  std::string name;      // of the runtime's own events ("Method::execute", "native_call_add.out")
  std::string delegate;  // of what a delegate did: the node's name
  std::string metadata;  // kernel and shapes
  int64_t start_ns = 0, end_ns = 0;
  int instruction = -1;  // of the program, where it is known
};

struct DebugEvent {
  std::string name;  // of the node; outputs of the program need none
  common::Array value;
  bool output = false;
  int instruction = -1;
};

struct RunBlock {
  std::string name;  // "Execute"
  int bundled_input = -1;
  std::vector<ProfileEvent> profile;
  std::vector<DebugEvent> debug;
};

struct Etdump {
  std::vector<uint8_t> file;
  std::vector<char> debug_buffer;
};

// Throws amps::Error when the recorded tensors need more than `debug_limit` bytes.
Etdump make_etdump(const std::vector<RunBlock>& blocks, int64_t debug_limit);

}  // namespace anymps::runner
