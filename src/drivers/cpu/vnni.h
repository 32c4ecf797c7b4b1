// SPDX-License-Identifier: Apache-2.0
// Whether the processor multiplies and adds four bytes at once (VNNI) in the vectors of a set of
// instructions. It does not follow from the set: servers have it with AVX-512, small processors
// with AVX2 alone.
#pragma once

#include "drivers/cpu/isa.h"

namespace anymps::cpu {

bool find_vnni(const Processor& processor, Isa isa);
bool has_vnni();  // this processor, in the vectors of isa()

}  // namespace anymps::cpu
