// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu_aliases.h"

#include <cstring>

#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include "device/allocator.h"
#include "device/written.h"
#include "tensors/transfers.h"

namespace anymps::aten {

namespace {

using at::Tensor;

// A storage on another device over the same memory, which lives as long as either.
c10::Storage same_memory(const c10::Storage& storage, c10::Device device,
                         c10::Allocator* allocator) {
  auto* held = new c10::Storage(storage);
  c10::DataPtr data(
      storage.mutable_data(), held, [](void* owner) { delete static_cast<c10::Storage*>(owner); },
      device);
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                               storage.nbytes(), std::move(data), allocator, true);
}

Tensor over(c10::Storage storage, c10::DispatchKey key, const Tensor& like) {
  Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                         c10::DispatchKeySet(key), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                    like.storage_offset());
  if (like.is_conj()) made._set_conj(true);
  if (like.is_neg()) made._set_neg(true);
  return made;
}

c10::Storage new_storage(size_t bytes, c10::Allocator* allocator) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               allocator, true);
}

// Where the elements of a tensor lie in its storage: the first byte and how many.
std::pair<size_t, size_t> extent(const Tensor& tensor) {
  if (tensor.numel() == 0) return {0, 0};
  int64_t elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) elements += (tensor.size(i) - 1) * tensor.stride(i);
  const size_t size = tensor.element_size();
  return {static_cast<size_t>(tensor.storage_offset()) * size,
          static_cast<size_t>(elements) * size};
}

void copy_bytes(const c10::Storage& to, const c10::Storage& from, size_t first, size_t count) {
  if (count == 0) return;
  const Transfer transfer(from.device(), to.device(), count);
  std::memcpy(static_cast<char*>(to.mutable_data()) + first,
              static_cast<const char*>(from.data()) + first, count);
}

}  // namespace

CpuAliases::CpuAliases() : copies_(transfers_are_copies()) {}

c10::Storage CpuAliases::storage_for(const Tensor& tensor, Use use) const {
  const c10::Storage& own = tensor.storage();
  if (!copies_) return same_memory(own, at::kCPU, c10::GetCPUAllocator());
  c10::Storage made;
  for (const Pair& pair : pairs_)
    if (pair.device.is_alias_of(tensor)) made = pair.cpu.storage();
  if (!made) made = new_storage(own.nbytes(), c10::GetCPUAllocator());
  const auto [first, count] = extent(tensor);
  if (use != Use::kWritten) copy_bytes(made, own, first, count);
  return made;
}

Tensor CpuAliases::to_cpu(const Tensor& tensor, Use use) {
  if (!tensor.defined() || !tensor.device().is_mps()) return tensor;
  if (use != Use::kRead) note_write(tensor);
  for (Pair& pair : pairs_) {
    if (!pair.device.is_same(tensor)) continue;
    if (use != Use::kRead) pair.use = Use::kReadAndWritten;
    return pair.cpu;
  }
  if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
  Tensor made = over(storage_for(tensor, use), c10::DispatchKey::CPU, tensor);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    made.unsafeGetTensorImpl()->set_wrapped_number(true);
  pairs_.push_back({tensor, made, use});
  return made;
}

Tensor CpuAliases::to_device(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu() || tensor.layout() != at::kStrided)
    return tensor;
  for (const Pair& pair : pairs_) {
    if (pair.cpu.is_same(tensor)) return pair.device;
    // A view of an argument.
    if (tensor.storage().data() && pair.cpu.storage().data() == tensor.storage().data())
      return over(pair.device.storage(), c10::DispatchKey::MPS, tensor);
  }
  const c10::Storage& own = tensor.storage();
  if (!copies_) return over(same_memory(own, kDevice, &allocator()), c10::DispatchKey::MPS, tensor);
  c10::Storage made = new_storage(own.nbytes(), &allocator());
  const auto [first, count] = extent(tensor);
  copy_bytes(made, own, first, count);
  return over(std::move(made), c10::DispatchKey::MPS, tensor);
}

void CpuAliases::write_back() {
  for (const Pair& pair : pairs_) {
    if (pair.cpu.is_conj() != pair.device.is_conj()) pair.device._set_conj(pair.cpu.is_conj());
    if (pair.cpu.storage().data() != pair.device.storage().data()) {
      if (copies_ && pair.use == Use::kRead) continue;
      pair.device.resize_(pair.cpu.sizes());
      pair.device.copy_(pair.cpu);
    } else if (pair.cpu.sizes() != pair.device.sizes() ||
               pair.cpu.strides() != pair.device.strides()) {
      pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(pair.cpu.sizes(), pair.cpu.strides(),
                                                               pair.cpu.storage_offset());
    }
  }
}

size_t CpuAliases::bytes() const {
  size_t sum = 0;
  for (const Pair& pair : pairs_) sum += pair.device.nbytes();
  return sum;
}

}  // namespace anymps::aten
