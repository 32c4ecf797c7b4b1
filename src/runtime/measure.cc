// SPDX-License-Identifier: Apache-2.0
#include "runtime/measure.h"

namespace anymps {

void MeasureInputs::hold(size_t i, const TensorDesc& desc, std::shared_ptr<const void> elements) {
  inputs_[i] = {TensorDesc(desc.dtype, desc.shape), elements.get()};
  held_.push_back(std::move(elements));
}

void MeasureInputs::set(size_t i, const Constant& constant) {
  hold(i, constant.desc(), constant.data());
}

void MeasureInputs::set(size_t i, Device& device, const Tensor& tensor, Queue& queue) {
  if (device.driver().traits().host_visible) {
    const Tensor plain = device.contiguous(tensor, queue);
    return hold(i, plain.desc, std::shared_ptr<const void>(plain.buffer, plain.data()));
  }
  auto bytes = std::make_shared<std::vector<char>>(std::max<size_t>(tensor.desc.bytes(), 1));
  device.to_host(tensor, bytes->data(), queue);
  hold(i, tensor.desc, std::shared_ptr<const void>(bytes, bytes->data()));
}

std::vector<Shape> MeasureInputs::measure(const Op& op, const Attrs& attrs, size_t outputs) const {
  std::vector<Shape> shapes = op.measure({op, attrs, inputs_});
  if (shapes.size() < outputs)
    fail(Code::kInternal, "[{}] measure gave {} shapes for {} outputs", op.name, shapes.size(),
         outputs);
  shapes.resize(outputs);
  return shapes;
}

}  // namespace anymps
