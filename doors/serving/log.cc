// SPDX-License-Identifier: Apache-2.0
#include "serving/log.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace anymps::serving {
namespace {

struct Sink {
  std::mutex mutex;
  std::function<void(std::string_view)> write;
};
Sink& sink() {
  static Sink instance;
  return instance;
}

}  // namespace

bool verbose() {
  static const bool on = [] {
    const char* value = std::getenv("TRITON_MPS_VERBOSE");
    return value && *value && std::string_view(value) != "0";
  }();
  return on;
}

void set_log_sink(std::function<void(std::string_view)> write) {
  std::lock_guard lock(sink().mutex);
  sink().write = std::move(write);
}

void log_line(std::string_view line) {
  std::function<void(std::string_view)> write;
  {
    std::lock_guard lock(sink().mutex);
    write = sink().write;
  }
  if (write)
    write(line);
  else
    std::fprintf(stderr, "metal_mps: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace anymps::serving
