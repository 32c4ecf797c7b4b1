// SPDX-License-Identifier: Apache-2.0
// A field of a FlatBuffers table: its number in the schema, which tells its place in a file, and
// its name, for messages.
#pragma once

namespace anymps::executorch {

struct FlatField {
  int number = 0;
  const char* name = nullptr;
};

}  // namespace anymps::executorch
