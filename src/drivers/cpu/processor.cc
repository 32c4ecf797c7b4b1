// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

#include "drivers/cpu/isa.h"

namespace anymps::cpu {

CpuidLeaf Processor::at(uint32_t leaf, uint32_t subleaf) const {
  uint32_t highest = 0;
  for (const CpuidLeaf& l : leaves)
    if (l.leaf == (leaf & 0x80000000) && l.subleaf == 0) highest = l.eax;
  if (leaf <= highest)
    for (const CpuidLeaf& l : leaves)
      if (l.leaf == leaf && l.subleaf == subleaf) return l;
  return {leaf, subleaf, 0, 0, 0, 0};
}

#if defined(__x86_64__)

static bool request_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl(2)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

static Processor read_processor() {
  constexpr CpuidLeaf kLeaves[] = {{0, 0},    {1, 0},    {7, 0},          {7, 1},
                                   {0x1D, 0}, {0x1D, 1}, {0x80000000, 0}, {0x80000001, 0}};
  Processor processor;
  for (CpuidLeaf l : kLeaves) {
    __cpuid_count(l.leaf, l.subleaf, l.eax, l.ebx, l.ecx, l.edx);
    processor.leaves.push_back(l);
  }
  constexpr uint32_t kOsXsave = 1u << 27;
  if (processor.at(1).ecx & kOsXsave) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    processor.xcr0 = (static_cast<uint64_t>(high) << 32) | low;
  }
  Processor permitted = processor;
  permitted.tiles_permitted = true;
  if (find_isa(permitted).isa == Isa::kAmx) processor.tiles_permitted = request_tiles();
  return processor;
}

#else

static Processor read_processor() { return {}; }

#endif

const Processor& this_processor() {
  static const Processor processor = read_processor();
  return processor;
}

}  // namespace anymps::cpu
