// SPDX-License-Identifier: Apache-2.0
#include "kernels/fallback_report.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace anymps::aten {

namespace {

struct Entry {
  uint64_t count = 0, bytes = 0;
  double milliseconds = 0;
};

struct Report {
  std::mutex mutex;
  std::map<std::string, Entry> entries;
  void (*observer)(const char* op) = nullptr;  // told of an op's first fallback
};

Report& report() {
  static Report& made = *new Report;
  return made;
}

}  // namespace

void report_fallback(const c10::OperatorName& op, size_t bytes, double milliseconds) {
  const std::string name = op.overload_name.empty() ? op.name : op.name + "." + op.overload_name;
  void (*observer)(const char*) = nullptr;
  {
    std::lock_guard lock(report().mutex);
    Entry& entry = report().entries[name];
    if (entry.count == 0) observer = report().observer;
    ++entry.count;
    entry.bytes += bytes;
    entry.milliseconds += milliseconds;
  }
  if (observer) observer(name.c_str());
}

extern "C" __attribute__((visibility("default"))) void anymps_torch_observe_fallbacks(
    void (*observer)(const char*)) {
  std::lock_guard lock(report().mutex);
  report().observer = observer;
}

// Tells of each op; with `reset` all is forgotten afterwards.
extern "C" __attribute__((visibility("default"))) void anymps_torch_fallbacks(
    void (*tell)(const char* op, uint64_t count, uint64_t bytes, double milliseconds), int reset) {
  std::map<std::string, Entry> entries;
  {
    std::lock_guard lock(report().mutex);
    entries = report().entries;
    if (reset) report().entries.clear();
  }
  for (const auto& [name, entry] : entries)
    tell(name.c_str(), entry.count, entry.bytes, entry.milliseconds);
}

}  // namespace anymps::aten
