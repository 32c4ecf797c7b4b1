// SPDX-License-Identifier: Apache-2.0
// Ops of one to three tensors and numbers, as PyTorch's C++ code calls them: without a stack, whose
// making takes as long as adding two numbers. It is the same op (op.h) with its arguments in place.
#pragma once

#include <array>

#include <ATen/core/dispatch/Dispatcher.h>
#include "kernels/op.h"

namespace anymps::aten {

// Arguments as values that own nothing: they live as long as the call.
template <size_t kCount>
class Borrowed {
 public:
  template <class... Arguments>
  explicit Borrowed(const Arguments&... arguments) : values_{borrowed(arguments)...} {}
  ~Borrowed() {
    for (c10::IValue& value : values_)
      if (value.isTensor()) Traits::destroyBorrow(value.toTensor());
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  c10::ArrayRef<c10::IValue> values() const { return values_; }

 private:
  using Traits = c10::MaybeOwnedTraits<at::Tensor>;

  static c10::IValue borrowed(const at::Tensor& tensor) { return Traits::createBorrow(tensor); }
  static c10::IValue borrowed(const at::Scalar& number) { return number; }

  std::array<c10::IValue, kCount> values_;
};

// Result: at::Tensor, or at::Tensor& for what is changed in place, which is the first argument.
template <class Result, class... Arguments>
class Typed final : public c10::OperatorKernel {
 public:
  Typed(std::unique_ptr<BoxedOp> op, c10::OperatorHandle handle)
      : op_(std::move(op)), handle_(std::move(handle)) {}

  Result operator()(Arguments... arguments) {
    at::Tensor made;
    {
      const Borrowed<sizeof...(Arguments)> given(arguments...);
      if (!op_->run_at_once(handle_, given.values(), made)) {
        torch::jit::Stack stack(given.values().begin(), given.values().end());
        (*op_)(handle_, {}, &stack);
        made = std::move(stack.back()).toTensor();
      }
    }
    if constexpr (std::is_reference_v<Result>)
      return first(arguments...);
    else
      return made;
  }

 private:
  template <class... Others>
  static at::Tensor& first(at::Tensor& self, Others&...) {
    return self;
  }

  std::unique_ptr<BoxedOp> op_;
  const c10::OperatorHandle handle_;
};

// Registers the op for tensors of mps. The handle's schema says how it is called.
void register_op(const c10::OperatorHandle& handle, std::unique_ptr<BoxedOp> op);

}  // namespace anymps::aten
