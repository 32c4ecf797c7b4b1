// SPDX-License-Identifier: Apache-2.0
#include "gradients/gradient_sum.h"

#include <memory>
#include <utility>

#include <paddle/phi/api/include/api.h>
#include <paddle/phi/backends/device_manager.h>
#include <paddle/phi/core/compat/convert_utils.h>
#include "kernels/call.h"

// Of a header that Paddle does not bring.
namespace paddle::experimental {
phi::DeviceContext* GetDeviceContextByBackend(phi::Backend backend);
}

namespace anymps::paddle {

namespace {

const DenseTensor* dense(const ::paddle::Tensor& tensor) {
  const phi::TensorBase* base = tensor.impl().get();
  const bool taken = base && DenseTensor::classof(base) && base->initialized() && base->numel() > 0;
  return taken ? static_cast<const DenseTensor*>(base) : nullptr;
}

// The kernel itself, for what gradients of one value are in nearly all cases.
std::shared_ptr<DenseTensor> sum_of_like(const DenseTensor& x, const DenseTensor& y) {
  static const lowering::Row kRow = {"add", "x y", "add(x, y)"};
  static const auto& kernel = *new lowering::Kernel(kRow);
  const phi::Place& place = x.place();
  phi::DeviceManager::SetDevice(place);
  const phi::DeviceContext* context =
      ::paddle::experimental::GetDeviceContextByBackend(phi::TransToPhiBackend(place));
  phi::DenseTensorMeta meta = x.meta();
  meta.offset = 0;
  auto sum = std::make_shared<DenseTensor>(std::shared_ptr<phi::Allocation>(), meta);
  KernelCall call(kernel);
  call.add(x);
  call.add(y);
  call.add(sum.get());
  call.run(static_cast<const phi::CustomContext&>(*context));
  return sum;
}

}  // namespace

::paddle::Tensor gradient_sum(const ::paddle::Tensor& x, const ::paddle::Tensor& y) {
  ::paddle::Tensor made = y;
  const DenseTensor *a = dense(x), *b = dense(y);
  const bool alike = a && b && a->dtype() == b->dtype() && a->dims() == b->dims() &&
                     a->layout() == b->layout() && a->place() == b->place() &&
                     a->meta().is_contiguous() && b->meta().is_contiguous();
  made.set_impl(alike ? sum_of_like(*a, *b) : ::paddle::experimental::add(x, y).impl());
  return made;
}

}  // namespace anymps::paddle
