// SPDX-License-Identifier: Apache-2.0
// Files that callers write the way models are saved.
#include "api/handles.h"
#include "base/output_file.h"

using namespace anymps;
using namespace anymps::api;

extern "C" amps_status amps_file_write(const char* path, const amps_bytes* parts, size_t count) {
  return guard([&] {
    for (size_t i = 0; i < count; ++i)
      require((&need(parts, "parts"))[i].data || parts[i].size == 0, "[api] part {} is NULL", i);
    OutputFile file(&need(path, "path"), "write");
    for (size_t i = 0; i < count; ++i) file.write(parts[i].data, parts[i].size);
    file.keep();
  });
}
