// SPDX-License-Identifier: Apache-2.0
// Registers the rows of a table as kernels of the device "mps". Each row names Paddle's declaration
// of the kernel, so that the compiler knows its signature; the code made for it only hands its
// arguments on. A family's file is
//     KERNEL(softmax, Softmax, kFloats, "x axis", "softmax(x, axis=axis)")
// per line (*.inc), and a .cc that includes Paddle's headers and then table.inc with FAMILY set.
#pragma once

#include <vector>

#include <paddle/phi/core/kernel_registry.h>
#include "kernels/call.h"

namespace anymps::paddle {

struct Entry {
  lowering::Row row;
  TypeSet types;
  phi::KernelArgsParseFn parse;
  phi::KernelFn boxed;
  void* unboxed;
};

// Remembers the rows too, for the page that lists them.
void register_kernels(const std::vector<Entry>& entries,
                      phi::DataLayout layout = phi::DataLayout::ALL_LAYOUT);

// A row as a function of a kernel's signature.
template <class Family, int kIndex, class Signature>
struct Boxed;
template <class Family, int kIndex, class... Arguments>
struct Boxed<Family, kIndex, void (*)(const phi::CustomContext&, Arguments...)> {
  static void run(const phi::CustomContext& context, Arguments... arguments) {
    static const lowering::Kernel& kernel = *new lowering::Kernel(Family::row(kIndex));
    KernelCall call(kernel);
    (call.add(arguments), ...);
    call.run(context);
  }
};

// A function of such a signature as a kernel.
template <auto kKernel>
Entry entry(const lowering::Row& row, TypeSet types) {
  using Implementation = phi::KernelImpl<decltype(kKernel), kKernel>;
  return {row, types, phi::KernelArgsParseFunctor<decltype(kKernel)>::Parse,
          &Implementation::Compute, reinterpret_cast<void*>(&Implementation::VariadicCompute)};
}

template <class Family, int kIndex, class Signature>
Entry entry_of(TypeSet types) {
  return entry<&Boxed<Family, kIndex, Signature>::run>(Family::row(kIndex), types);
}

}  // namespace anymps::paddle
