// SPDX-License-Identifier: Apache-2.0
// What ANYMPS_TUNE has found for a device: in memory, and in files that other processes read.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/fork.h"
#include "drivers/driver.h"
#include "runtime/tuning/choice_file.h"

namespace anymps {

class ChoiceStore {
 public:
  explicit ChoiceStore(const Driver& driver) : driver_(driver) {}

  // The name of the kernel for what `key` stands for, with so many threads.
  std::optional<std::string> find(int threads, uint64_t key);
  void add(int threads, uint64_t key, const std::string& name);
  void save();  // what is new. Where it cannot be written it stays in memory.

  std::string path(int threads) const;  // "": there is no folder, or the driver is not measured
  // What is in the file, as doctor shows it.
  struct Report {
    std::string path, problem;
    size_t choices = 0;
  };
  Report report(int threads) const;
  // Nodes whose kernels were measured, not found.
  uint64_t measured() const { return measured_; }

 private:
  struct Sheet {  // of one file
    std::string identity;
    Choices known, fresh;
  };
  std::string identity(int threads) const;
  Sheet& sheet(int threads);

  const Driver& driver_;
  std::atomic<uint64_t> measured_{0};
  std::map<std::pair<std::string, std::string>, Sheet> sheets_;  // by path and identity
  ForkMutex mutex_;
};

}  // namespace anymps
