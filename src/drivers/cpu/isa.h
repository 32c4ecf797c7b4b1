// SPDX-License-Identifier: Apache-2.0
// The instruction set that kernels may use: what the processor has, capped by ANYMPS_ISA. The first
// call applies the cap to Highway and to oneDNN, so whoever looks up a vector function calls it.
#pragma once

namespace anymps::cpu {

enum class Isa { kSse4, kAvx2, kAvx512 };

Isa isa();
const char* name(Isa isa);

}  // namespace anymps::cpu
