// SPDX-License-Identifier: Apache-2.0
// Tensors without elements yet, their storage, and views of it.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/i0.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>
#include "device/allocator.h"
#include "kernels/cpu_aliases.h"
#include "strict.h"

namespace anymps::aten {

namespace {

using at::IntArrayRef;
using at::Tensor;

at::ScalarType checked_type(std::optional<at::ScalarType> given, std::optional<at::Layout> layout,
                            std::optional<bool> pinned) {
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided,
              "only strided tensors are made here, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pinned), "Pin memory can only be on CPU");
  const at::ScalarType type = c10::dtype_or_default(given);
  check_allowed_on_a_mac(type);
  return type;
}

// What is in new memory, where torch.use_deterministic_algorithms asks for it: NaN, or the largest.
Tensor filled_if_asked(Tensor made) {
  if (at::globalContext().deterministicAlgorithms() &&
      at::globalContext().deterministicFillUninitializedMemory())
    at::native::fill_empty_deterministic_(made);
  return made;
}

Tensor empty(IntArrayRef size, std::optional<at::ScalarType> dtype,
             std::optional<at::Layout> layout, std::optional<at::Device>,
             std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  return filled_if_asked(at::detail::empty_generic(size, &allocator(), kKeys,
                                                   checked_type(dtype, layout, pinned), format));
}

Tensor empty_strided(IntArrayRef size, IntArrayRef strides, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout> layout, std::optional<at::Device>,
                     std::optional<bool> pinned) {
  return filled_if_asked(at::detail::empty_strided_generic(size, strides, &allocator(), kKeys,
                                                           checked_type(dtype, layout, pinned)));
}

// A tensor of zeros that has no memory, which gradients use.
Tensor efficient_zeros(IntArrayRef size, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  static auto& nothing = *new at::native::ZeroTensorAllocator(kDevice);
  return at::detail::empty_generic(size, &nothing, kKeys.add(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(dtype), std::nullopt);
}

Tensor& set_storage(Tensor& self, at::Storage storage) {
  const auto count = static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize());
  return at::native::set_storage_cpu_(self, std::move(storage), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return at::native::set_storage_cpu_(self, source.storage(), source.storage_offset(),
                                      source.sizes(), source.strides());
}

Tensor& set_nothing(Tensor& self) {
  return at::native::set_storage_cpu_(
      self, at::Storage(c10::Storage::use_byte_size_t(), 0, &allocator(), true), 0, {0}, {});
}

// PyTorch's own asks for a kernel of the device, of which it knows those that it was compiled for.
Tensor kaiser_window_beta(int64_t length, bool periodic, double beta,
                          std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                          std::optional<at::Device>, std::optional<bool>) {
  const at::ScalarType type = c10::dtype_or_default(dtype);
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided,
              "kaiser_window is not implemented for sparse types");
  TORCH_CHECK(at::isFloatingType(type), "kaiser_window expects floating point dtypes, got: ", type);
  TORCH_CHECK(length >= 0,
              "kaiser_window requires non-negative window_length, got window_length=", length);
  const auto options = at::TensorOptions().device(kDevice);
  if (length < 2) return at::ones({length}, options.dtype(type));
  const int64_t points = periodic ? length + 1 : length;
  const Tensor x = at::arange(points, options.dtype(at::kDouble)) * (2.0 / (points - 1)) - 1;
  const Tensor y = at::i0((1 - x * x).clamp_min(0).sqrt() * beta) /
                   at::i0(at::full({}, beta, options.dtype(at::kDouble)));
  return y.narrow(0, 0, length).to(type);
}

Tensor kaiser_window_periodic(int64_t length, bool periodic, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout> layout, std::optional<at::Device> device,
                              std::optional<bool> pinned) {
  return kaiser_window_beta(length, periodic, 12.0, dtype, layout, device, pinned);
}

Tensor kaiser_window(int64_t length, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout> layout, std::optional<at::Device> device,
                     std::optional<bool> pinned) {
  return kaiser_window_beta(length, true, 12.0, dtype, layout, device, pinned);
}

// What torch.UntypedStorage.resize_ lacks for this device: the storage is that of `bytes`.
void resize_storage(const Tensor& bytes, int64_t size) {
  at::native::resize_bytes_cpu(bytes.storage().unsafeGetStorageImpl(), static_cast<size_t>(size));
}

// The same memory as a tensor of the CPU.
Tensor host_alias(const Tensor& bytes) { return CpuAliases().to_cpu(bytes); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_efficientzerotensor", efficient_zeros);
  m.impl("resize_", at::native::resize_);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("is_set_to", at::native::is_set_to);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("view.dtype", at::native::view_dtype);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  if (!strict()) {
    m.impl("kaiser_window", kaiser_window);
    m.impl("kaiser_window.periodic", kaiser_window_periodic);
    m.impl("kaiser_window.beta", kaiser_window_beta);
  }
}

TORCH_LIBRARY(anymps, m) {
  m.def("resize_storage(Tensor(a!) bytes, int size) -> ()");
  m.def("host_alias(Tensor bytes) -> Tensor");
}
TORCH_LIBRARY_IMPL(anymps, MPS, m) {
  m.impl("resize_storage", resize_storage);
  m.impl("host_alias", host_alias);
}

}  // namespace anymps::aten
