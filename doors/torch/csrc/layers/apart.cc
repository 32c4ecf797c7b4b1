// SPDX-License-Identifier: Apache-2.0
// Ops that are taken apart where PyTorch's derivative for them does not serve here; of their parts
// it knows all.
#include "layers/apart.h"

#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/renorm_ops.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

namespace anymps::aten {

namespace {

using at::Tensor;

// PyTorch's own kernel, which records the gradient and calls the device's: looked up before there
// is another.
template <class Op>
struct Usual {
  static const c10::OperatorHandle& op() {
    static const c10::OperatorHandle& found = *new c10::OperatorHandle(
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name));
    return found;
  }
  static const c10::KernelFunction& kernel() {
    static const auto& found =
        *new c10::KernelFunction(op().lookup(c10::DispatchKeySet(c10::DispatchKey::AutogradMPS)));
    return found;
  }
  template <class... Arguments>
  static Tensor call(c10::DispatchKeySet keys, Arguments... arguments) {
    return kernel().template call<Tensor, Arguments...>(op(), keys, arguments...);
  }
};
using UsualLinear = Usual<at::_ops::linear>;
using UsualRenorm = Usual<at::_ops::renorm>;

bool is_dual(const Tensor& tensor) { return tensor.defined() && tensor._fw_grad(0).defined(); }

// Under forward-mode differentiation (torch.func.jvp): where a device has a kernel for linear
// layers, PyTorch knows their gradient backwards alone.
Tensor linear(c10::DispatchKeySet keys, const Tensor& input, const Tensor& weight,
              const std::optional<Tensor>& bias) {
  const bool biased = bias && bias->defined();
  if (is_dual(input) || is_dual(weight) || (biased && is_dual(*bias))) [[unlikely]] {
    const Tensor product = at::matmul(input, weight.dim() > 1 ? weight.t() : weight);
    return biased ? product.add(*bias) : product;
  }
  return UsualLinear::call<const Tensor&, const Tensor&, const std::optional<Tensor>&>(
      keys, input, weight, bias);
}

// Of f64, whose norms the derivative would have in f32, as there is no f64 on a Mac.
Tensor renorm(c10::DispatchKeySet keys, const Tensor& self, const at::Scalar& p, int64_t dim,
              const at::Scalar& largest) {
  const bool is_f64 = c10::toRealValueType(self.scalar_type()) == at::kDouble;
  const bool derived = (self.requires_grad() && at::GradMode::is_enabled()) || is_dual(self);
  const bool wrong = self.dim() < 2 || p.isComplex() || p.to<double>() <= 0 ||
                     largest.isComplex() || largest.to<double>() < 0;
  if (!is_f64 || !derived || wrong)
    return UsualRenorm::call<const Tensor&, const at::Scalar&, int64_t, const at::Scalar&>(
        keys, self, p, dim, largest);
  std::vector<int64_t> others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != at::maybe_wrap_dim(dim, self.dim())) others.push_back(i);
  const Tensor norm = at::linalg_vector_norm(self, p, others, true);
  return self * at::where(norm > largest, (norm + 1e-7).reciprocal().mul(largest), 1.0);
}

}  // namespace

void take_apart() {
  UsualLinear::kernel();
  UsualRenorm::kernel();
  static auto& library = *new torch::Library(torch::Library::IMPL, "aten",
                                             c10::DispatchKey::AutogradMPS, __FILE__, __LINE__);
  library.impl("linear", linear);
  library.impl("renorm", renorm);
}

}  // namespace anymps::aten
