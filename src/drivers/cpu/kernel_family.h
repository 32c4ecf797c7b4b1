// SPDX-License-Identifier: Apache-2.0
// Registers kernels of several ops that are of one kind, in one list at the end of their file.
#pragma once

#include <initializer_list>

#include "drivers/kernel.h"

namespace anymps::cpu {

struct KernelFamily {
  struct Member {
    const char* op;
    KernelFactory make;
  };
  // `name` and `order` as KernelRegistrar has them.
  KernelFamily(const char* name, int order, std::initializer_list<Member> members) {
    for (const Member& member : members)
      KernelRegistrar("cpu", member.op, name, order, member.make);
  }
};

}  // namespace anymps::cpu
