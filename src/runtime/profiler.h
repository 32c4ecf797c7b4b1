// SPDX-License-Identifier: Apache-2.0
// Times of kernels, with bytes and FLOPs, as a table, as JSON and as a trace that Chrome's tracing
// page and Perfetto open. An executable run with no profiler attached pays one branch per kernel.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fork.h"

namespace anymps {

struct ProfileEvent {
  std::string node, op, kernel, detail, shapes;
  int64_t start_ns = 0, duration_ns = 0;
  double bytes = 0, flops = 0;
  uint64_t thread = 0;
};

class Profiler {
 public:
  using Clock = std::chrono::steady_clock;

  void add(ProfileEvent event);
  void add_run(int64_t start_ns, int64_t duration_ns);  // one whole run of an executable
  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }
  void reset();

  std::vector<ProfileEvent> events() const;
  std::string table(size_t rows = 40) const;  // by node, slowest first, then totals by op
  std::string json() const;                   // the same as data
  std::string trace() const;                  // Chrome trace events

 private:
  struct Row;
  std::vector<Row> rows() const;

  const Clock::time_point start_ = Clock::now();
  mutable ForkMutex mutex_;
  std::vector<ProfileEvent> events_;
  std::vector<std::pair<int64_t, int64_t>> runs_;
};

}  // namespace anymps
