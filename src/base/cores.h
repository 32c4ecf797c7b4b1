// SPDX-License-Identifier: Apache-2.0
// How many cores this process has. The machine may have more than a container lets it use: a mask
// of CPUs (affinity), or a quota of CPU time, which starts threads that are then stopped in the
// middle of their work. All of it is read from files, so that machines that are not available are
// test data.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace anymps {

struct Cores {
  int machine = 1;   // CPUs that are online, hyper-threads included
  int affinity = 1;  // CPUs that the process may run on
  int physical =
      1;  // cores that those belong to: hyper-threads count once; where unknown: affinity
  double quota = 0;  // CPUs that it may use on average; 0: no bound
  int usable = 1;    // threads that can run at once: affinity, or the quota rounded up
};

// CPUs that the calling thread, and those that it starts, may run on; empty if it cannot be told.
std::vector<int> allowed_cpus();

// `root` stands for "/". What cannot be read or understood bounds nothing.
Cores find_cores(const std::string& root = "/", const std::vector<int>& cpus = allowed_cpus());

// Seconds since the machine started, over the CPUs of a list, and those of this process.
struct CpuTime {
  double busy = 0, all = 0, own = 0;
  int cpus = 0;  // that were found; 0: the system does not tell
};
CpuTime cpu_time(const std::string& root = "/", const std::vector<int>& cpus = allowed_cpus());

// How many of these CPUs others kept busy from one time to the other: other processes, and what the
// host took from a virtual machine. -1: it cannot be told.
double busy_elsewhere(const CpuTime& from, const CpuTime& to);
double busy_elsewhere(std::chrono::milliseconds interval = std::chrono::milliseconds(100));

}  // namespace anymps
