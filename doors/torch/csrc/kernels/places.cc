// SPDX-License-Identifier: Apache-2.0
#include "kernels/places.h"

#include <algorithm>

#include <ATen/ops/min.h>
#include <ATen/ops/nonzero.h>
#include "device/allocator.h"
#include "kernels/cpu_aliases.h"

namespace anymps::aten {

namespace {

using at::Tensor;

bool is_mask(const Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

template <class T>
int64_t lowest(const Tensor& indices) {
  const T* first = indices.const_data_ptr<T>();
  return *std::min_element(first, first + indices.numel());
}

}  // namespace

std::vector<Tensor> places_of(const Tensor& self, const c10::IValue& list) {
  std::vector<Tensor> places;
  for (const c10::IValue& item : list.toListRef()) {
    Tensor index = item.isTensor() ? item.toTensor() : Tensor();
    if (!index.defined()) {
      places.emplace_back();
      continue;
    }
    TORCH_CHECK_INDEX(
        is_mask(index) || index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
        "tensors used as indices must be long, int, byte or bool tensors");
    if (!index.device().is_mps()) index = index.to(kDevice);
    if (!is_mask(index)) {
      places.push_back(index);
      continue;
    }
    const auto first = std::ssize(places);
    for (int64_t axis = 0; axis < index.dim(); ++axis)
      TORCH_CHECK_INDEX(first + axis < self.dim() && index.size(axis) == self.size(first + axis),
                        "The shape of the mask ", index.sizes(), " at index ", axis,
                        " does not match the shape of the indexed tensor ", self.sizes(),
                        " at index ", first + axis);
    const Tensor found = at::nonzero(index);
    for (int64_t axis = 0; axis < index.dim(); ++axis) places.push_back(found.select(1, axis));
  }
  return places;
}

void check_from_zero(const Tensor& indices) {
  if (indices.numel() == 0) return;
  int64_t least = 0;
  if (indices.is_contiguous() && indices.scalar_type() == at::kLong)
    least = lowest<int64_t>(indices);
  else if (indices.is_contiguous() && indices.scalar_type() == at::kInt)
    least = lowest<int32_t>(indices);
  else
    least = at::min(CpuAliases().to_cpu(indices)).item<int64_t>();
  TORCH_CHECK_INDEX(least >= 0, "index ", least, " is out of bounds: it is below 0");
}

}  // namespace anymps::aten
