// SPDX-License-Identifier: Apache-2.0
// The one place that decides on instruction sets, for our kernels and for oneDNN: what the machine
// can really run, capped by ANYMPS_ISA. The first call of isa() applies the decision to Highway and
// to oneDNN, so whoever looks up a vector function or makes a primitive calls it first.
#pragma once

#include <string>

#include "base/dtype.h"
#include "drivers/cpu/processor.h"

namespace anymps::cpu {

enum class Isa { kNone, kSse4, kAvx2, kAvx512, kAmx };

struct FoundIsa {
  Isa isa = Isa::kNone;
  std::string missing;  // why not the next set, if announced: "amx: CPUID hides leaf 0x1D"
};

// The highest set of which every instruction, register and permission is there.
FoundIsa find_isa(const Processor& processor);

// `found`, or what ANYMPS_ISA caps it to ("" does not). Fails below SSE4, which every kernel needs.
Isa cap_isa(Isa found, const std::string& cap);

// The half types whose products are slower than those of f32, for want of instructions.
DTypeSet slow_halves(const Processor& processor, Isa isa);

// Whether the processor multiplies and adds four bytes at once (VNNI) in the vectors of a set. It
// does not follow from the set: servers have it with AVX-512, small processors with AVX2 alone.
bool find_vnni(const Processor& processor, Isa isa);

Isa isa();
bool has_vnni();  // this processor, in the vectors of isa()
const char* name(Isa isa);
std::string describe_isa();  // "avx512 (amx: CPUID hides leaf 0x1D)", "avx2 (found amx)"

}  // namespace anymps::cpu
