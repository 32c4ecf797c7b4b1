// SPDX-License-Identifier: Apache-2.0
// The CPU driver: vector kernels (Highway) and oneDNN on the host's memory and threads.
#include <hwy/highway.h>

#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/cores.h"
#include "base/env.h"
#include "base/thread_pool.h"
#include "drivers/cpu/elementwise/elementwise.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/row_chain.h"
#include "drivers/cpu/threads.h"
#include "drivers/driver.h"

namespace anymps {

namespace {

std::string read_processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown processor";
}

const std::string& processor() {
  static const std::string name = read_processor_name();
  return name;
}

std::string libraries() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, Highway {}.{}.{}", version->major, version->minor,
                     version->patch, HWY_MAJOR, HWY_MINOR, HWY_PATCH);
}

class CpuDriver final : public Driver {
 public:
  CpuDriver() {
    cpu::isa();  // applies ANYMPS_ISA before oneDNN makes its first primitive
    const int64_t asked = env_int("ANYMPS_NUM_THREADS");
    require(asked >= 0 && asked <= kMostThreads, "[env] ANYMPS_NUM_THREADS={} is not in 0..{}",
            asked, kMostThreads);
    ThreadPool::get().resize(asked ? static_cast<int>(asked) : find_cores().usable);
  }

  const char* name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("{}, {} threads, {}, {}", processor(), max_threads(), cpu::describe_isa(),
                       libraries());
  }
  std::string timing_identity() const override {
    const std::string winograd = env_string("ANYMPS_WINOGRAD");
    return fmt::format("{}, {}, {}{}{}", processor(), cpu::describe_isa(), libraries(),
                       winograd.empty() ? "" : ", Winograd ", winograd);
  }
  const KernelList& kernels(const Op& op) const override { return cpu::kernels_of(op); }
  DriverTraits traits() const override {
    DriverTraits traits;
    traits.prefers_nhwc = true;
    traits.fuses = true;
    traits.widened = cpu::slow_halves(cpu::this_processor(), cpu::isa());
    traits.flushes_denormals = true;
    return traits;
  }
  int use_threads(int threads) override {
    const int most = exchange_thread_limit(0);
    exchange_thread_limit(most > 0 && (threads <= 0 || threads > most) ? most : threads);
    return most;
  }
  void restore_threads(int before) override { exchange_thread_limit(before); }
  int max_threads() const override { return ThreadPool::get().size(); }
  void set_max_threads(int threads) override { ThreadPool::get().resize(threads); }
  ThreadTimes thread_times() const override {
    const ThreadPool::Times times = ThreadPool::get().times();
    return {times.helped, times.waited};
  }
  KernelPtr join(std::span<const ChainLink> links) override { return cpu::join_rows(links); }
  void parallel(size_t count, int threads, const std::function<void(size_t)>& fn) override {
    parallel_calls(count, threads > 0 ? threads : max_threads(), fn);
  }
};

const DriverRegistrar kDriver("cpu", [] { return std::make_unique<CpuDriver>(); });

}  // namespace

}  // namespace anymps
