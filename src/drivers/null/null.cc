// SPDX-License-Identifier: Apache-2.0
// The null driver: plans like any other, counts what it would do, computes nothing. For measuring
// the engine's own overhead, and for looking at plans of models that are too large to run.
#include <atomic>
#include <limits>

#include "drivers/driver.h"

namespace anymps {

namespace {

std::atomic<uint64_t> launches{0};

class NullKernel final : public Kernel {
 public:
  void run(const KernelArgs&) const override { launches.fetch_add(1, std::memory_order_relaxed); }
  bool reads(size_t) const override { return false; }
  bool in_place(size_t, size_t) const override { return true; }
};

// Nothing is ever written to it, so there can be more of it than the machine has.
class NullMemory final : public HostMemory {
 public:
  size_t capacity() const override { return std::numeric_limits<size_t>::max(); }
};

class NullDriver final : public Driver {
 public:
  const char* name() const override { return "null"; }
  std::string description() const override {
    return fmt::format("plans and counts, computes nothing; {} launches so far", launches.load());
  }
  DriverTraits traits() const override {
    DriverTraits traits;
    traits.computes = false;
    traits.reference_fallback = false;
    return traits;
  }
  std::unique_ptr<RawMemory> create_memory() override { return std::make_unique<NullMemory>(); }
  const KernelList& kernels(const Op&) const override {
    static const KernelList kList = {{"null", 0, [](const KernelRequest&, std::string&) {
                                        return std::make_shared<NullKernel>();
                                      }}};
    return kList;
  }
};

const DriverRegistrar kDriver("null", [] { return std::make_unique<NullDriver>(); });

}  // namespace

}  // namespace anymps
