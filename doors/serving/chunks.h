// SPDX-License-Identifier: Apache-2.0
// How many rows of a batch to run at once. A batch is worthwhile where a run has a fixed cost
// (weights are read, kernels begin) and a burden where activations no longer fit the caches: on
// CPUs, dense layers gain from it and convolutions lose. So it is measured, model by model. The
// runs of a batch that is cut may go side by side, each on its own thread: then no thread waits for
// the others at the end of each layer.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace anymps::serving {

class Chunks {
 public:
  // `fixed`: this many rows, whatever the times say; 0: all rows that there are; -1: measured.
  explicit Chunks(int64_t fixed) : fixed_(fixed) {}

  // Rows to run at once when this many wait.
  int64_t choose(int64_t rows);
  // A run of this many rows took this long, or its share of the time of the runs beside it. Not the
  // first run of its shape, which prepares memory.
  void record(int64_t rows, uint64_t nanoseconds);
  int64_t best() const;
  // Do runs of this many rows take long enough that handing them to other threads pays?
  bool worth_a_thread(int64_t rows) const;

 private:
  static constexpr int kSizes = 20;       // 1, 2, 4 … rows
  static constexpr uint32_t kEnough = 3;  // runs before a size is trusted
  static constexpr uint32_t kAgain = 64;  // batches after which another size is tried again
  // A larger size must be faster by this: it costs latency, memory and a plan for each size.
  static constexpr double kGain = 0.9;
  static constexpr double kThreadNs = 300e3;
  struct Size {
    uint32_t runs = 0;
    double row_ns = 0;  // moving average
  };

  const int64_t fixed_;
  mutable std::mutex mutex_;
  std::array<Size, kSizes> sizes_;
  int best_ = 0;
  uint32_t batches_ = 0;
};

}  // namespace anymps::serving
