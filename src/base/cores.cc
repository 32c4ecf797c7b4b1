// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <thread>

#include "base/control_groups.h"

namespace anymps {

namespace {

constexpr int kMostCpus = 1 << 16;  // more than Linux can be built for

std::string_view stripped(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

int64_t number_in(std::string_view text) {  // -1: none, or a negative one
  text = stripped(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

// "0-3,8": how many; 0 for what is not such a list.
int count_of_list(std::string_view text) {
  int64_t count = 0;
  for (const std::string_view part : split_at(stripped(text), ',')) {
    const size_t dash = part.find('-');
    const int64_t first = number_in(part.substr(0, dash));
    const int64_t last = dash == part.npos ? first : number_in(part.substr(dash + 1));
    if (first < 0 || last < first || last >= kMostCpus) return 0;
    count += last - first + 1;
  }
  return static_cast<int>(std::min<int64_t>(count, kMostCpus));
}

// The CPU time that a group may use in a period, in CPUs; 0: no bound.
double quota_of(const ControlGroup& group) {
  int64_t quota = -1, period = -1;
  if (group.unified) {  // "150000 100000", "max 100000"
    const std::string text = small_file(group.folder + "/cpu.max");
    const auto words = split_at(stripped(text), ' ');
    if (words.size() != 2) return 0;
    quota = number_in(words[0]);
    period = number_in(words[1]);
  } else {
    quota = number_in(small_file(group.folder + "/cpu.cfs_quota_us"));
    period = number_in(small_file(group.folder + "/cpu.cfs_period_us"));
  }
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

int physical_cores(const std::string& root, const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    std::string siblings = small_file(
        fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, cpu));
    if (siblings.empty()) return 0;
    cores.insert(std::move(siblings));
  }
  return static_cast<int>(cores.size());
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int size = CPU_SETSIZE; size <= kMostCpus; size *= 2) {  // EINVAL: the kernel has more CPUs
    cpu_set_t* set = CPU_ALLOC(size);
    if (!set) return cpus;
    const size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    if (known)
      for (int cpu = 0; cpu < size; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (known) return cpus;
  }
  return cpus;
}

Cores find_cores(const std::string& root, const std::vector<int>& cpus) {
  Cores cores;
  const int online = count_of_list(small_file(root + "/sys/devices/system/cpu/online"));
  cores.affinity = static_cast<int>(cpus.size());
  cores.machine = std::max({1, online ? online : cpu_time(root, {}).cpus, cores.affinity});
  if (cpus.empty()) cores.affinity = cores.machine;
  cores.physical = physical_cores(root, cpus);
  if (cores.physical == 0) cores.physical = cores.affinity;
  for (const ControlGroup& group : control_groups("cpu", root))
    if (const double quota = quota_of(group); quota > 0)
      cores.quota = cores.quota > 0 ? std::min(cores.quota, quota) : quota;
  cores.usable = cores.affinity;
  if (cores.quota > 0)
    cores.usable = static_cast<int>(std::min<double>(cores.affinity, std::ceil(cores.quota)));
  cores.usable = std::max(1, cores.usable);
  return cores;
}

CpuTime cpu_time(const std::string& root, const std::vector<int>& cpus) {
  CpuTime time;
  const double tick = 1.0 / static_cast<double>(std::max<int64_t>(1, sysconf(_SC_CLK_TCK)));
  const std::string stat = small_file(root + "/proc/stat");
  for (const std::string_view line : split_at(stat, '\n')) {
    // "cpu3 user nice system idle iowait irq softirq steal guest guest_nice", in ticks; the two of
    // guests are in user and nice as well.
    const auto words = split_at(stripped(line), ' ');
    if (words.size() < 5 || !words[0].starts_with("cpu")) continue;
    const int64_t cpu = number_in(words[0].substr(3));
    if (cpu < 0) continue;  // "cpu": the sum of all
    if (!cpus.empty() && std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) continue;
    ++time.cpus;
    for (size_t i = 1; i < std::min<size_t>(words.size(), 9); ++i) {
      const double spent = static_cast<double>(std::max<int64_t>(0, number_in(words[i]))) * tick;
      time.all += spent;
      if (i != 4 && i != 5) time.busy += spent;
    }
  }
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  time.own = static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9;
  return time;
}

double busy_elsewhere(const CpuTime& from, const CpuTime& to) {
  const double all = to.all - from.all;
  if (to.cpus == 0 || to.cpus != from.cpus || all <= 0) return -1;
  const double others = (to.busy - from.busy) - (to.own - from.own);
  return std::clamp(others / (all / to.cpus), 0.0, static_cast<double>(to.cpus));
}

double busy_elsewhere(std::chrono::milliseconds interval) {
  const CpuTime from = cpu_time();
  std::this_thread::sleep_for(interval);
  return busy_elsewhere(from, cpu_time());
}

}  // namespace anymps
