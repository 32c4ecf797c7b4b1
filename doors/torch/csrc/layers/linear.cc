// SPDX-License-Identifier: Apache-2.0
// Linear layers under forward-mode differentiation (torch.func.jvp). Where a device has a kernel
// for the op, PyTorch knows its gradient backwards alone; of its parts it knows both.
#include "layers/linear.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/matmul.h>
#include <torch/library.h>

namespace anymps::aten {

namespace {

using at::Tensor;

const c10::OperatorHandle& op() {
  static const c10::OperatorHandle& found =
      *new c10::OperatorHandle(c10::Dispatcher::singleton().findSchemaOrThrow("aten::linear", ""));
  return found;
}

// PyTorch's own, which records the gradient and calls the device's kernel.
const c10::KernelFunction& usual() {
  static const auto& kernel =
      *new c10::KernelFunction(op().lookup(c10::DispatchKeySet(c10::DispatchKey::AutogradMPS)));
  return kernel;
}

bool is_dual(const Tensor& tensor) { return tensor.defined() && tensor._fw_grad(0).defined(); }

Tensor linear(c10::DispatchKeySet keys, const Tensor& input, const Tensor& weight,
              const std::optional<Tensor>& bias) {
  const bool biased = bias && bias->defined();
  if (is_dual(input) || is_dual(weight) || (biased && is_dual(*bias))) [[unlikely]] {
    const Tensor product = at::matmul(input, weight.dim() > 1 ? weight.t() : weight);
    return biased ? product.add(*bias) : product;
  }
  return usual().call<Tensor, const Tensor&, const Tensor&, const std::optional<Tensor>&>(
      op(), keys, input, weight, bias);
}

}  // namespace

void take_linear_apart_for_dual_numbers() {
  usual();  // as long as it can be found
  static auto& library = *new torch::Library(torch::Library::IMPL, "aten",
                                             c10::DispatchKey::AutogradMPS, __FILE__, __LINE__);
  library.impl("linear", linear);
}

}  // namespace anymps::aten
