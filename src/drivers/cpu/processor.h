// SPDX-License-Identifier: Apache-2.0
// What a processor, its hypervisor and the kernel say of instruction sets, as plain data: a machine
// that is not available can be written down in a test.
#pragma once

#include <cstdint>
#include <vector>

namespace anymps::cpu {

struct CpuidLeaf {
  uint32_t leaf, subleaf;
  uint32_t eax, ebx, ecx, edx;
};

struct Processor {
  std::vector<CpuidLeaf> leaves;
  uint64_t xcr0 = 0;             // the registers that the kernel saves
  bool tiles_permitted = false;  // the kernel lets this process use AMX's tiles

  // Zeros for what is not there. A leaf above the highest that leaf 0 names is not there, whatever
  // the table says: real processors answer for such a leaf with the contents of another one.
  CpuidLeaf at(uint32_t leaf, uint32_t subleaf = 0) const;
};

// This machine's. Asks the kernel for AMX's tiles only where all else says that they work: the
// permission holds for the whole process and raises what its signal stacks need.
const Processor& this_processor();

}  // namespace anymps::cpu
