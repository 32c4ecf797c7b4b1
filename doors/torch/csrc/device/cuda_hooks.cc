// SPDX-License-Identifier: Apache-2.0
// PyTorch's wheel for Linux is built for CUDA, and takes one accelerator: "Cannot have both MPS and
// cuda". On a machine without a CUDA device the CUDA hooks must say that they are not built. Their
// object is made before a plug-in is loaded, so the one entry of its table of functions is
// replaced.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ATen/detail/CUDAHooksInterface.h>

namespace anymps::aten {

namespace {

bool not_built(const void*) { return false; }

// The offset of a virtual function in the table, as the Itanium C++ ABI keeps it in a pointer to
// member.
ptrdiff_t slot_of(bool (at::AcceleratorHooksInterface::*function)() const) {
  struct {
    ptrdiff_t pointer, adjustment;
  } parts;
  static_assert(sizeof(parts) == sizeof(function));
  std::memcpy(&parts, &function, sizeof(parts));
  return parts.pointer - 1;
}

}  // namespace

// 0: PyTorch has no other accelerator. 1: there is a CUDA device, which is left alone. 2: this
// PyTorch is laid out otherwise.
extern "C" __attribute__((visibility("default"))) int anymps_torch_set_cuda_aside() {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  if (!hooks.isBuilt()) return 0;
  if (hooks.deviceCount() > 0) return 1;
  char* table = nullptr;
  std::memcpy(&table, static_cast<const void*>(&hooks), sizeof(table));
  char* slot = table + slot_of(&at::AcceleratorHooksInterface::isBuilt);
  const auto page =
      reinterpret_cast<uintptr_t>(slot) & ~static_cast<uintptr_t>(sysconf(_SC_PAGESIZE) - 1);
  const size_t bytes = reinterpret_cast<uintptr_t>(slot) + sizeof(void*) - page;
  if (mprotect(reinterpret_cast<void*>(page), bytes, PROT_READ | PROT_WRITE) != 0) return 2;
  const auto function = reinterpret_cast<uintptr_t>(&not_built);
  std::memcpy(slot, &function, sizeof(function));
  mprotect(reinterpret_cast<void*>(page), bytes, PROT_READ);
  return at::detail::getCUDAHooks().isBuilt() ? 2 : 0;
}

}  // namespace anymps::aten
