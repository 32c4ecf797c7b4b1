// SPDX-License-Identifier: Apache-2.0
#include "kernels/typed.h"

#include <string>
#include <vector>

namespace anymps::aten {

namespace {

using at::Scalar;
using at::Tensor;

// The op's arguments in letters, t for a tensor and n for a number, behind ! if the first is
// changed; nothing if it has others, or more results than one tensor.
std::string shape_of(const c10::FunctionSchema& schema) {
  std::string shape;
  if (schema.returns().size() != 1 || schema.is_vararg()) return shape;
  const c10::Argument& result = schema.returns()[0];
  if (result.type()->kind() != c10::TypeKind::TensorType) return shape;
  if (result.alias_info()) shape = "!";
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::TypeKind kind = argument.type()->kind();
    const bool tensor = kind == c10::TypeKind::TensorType;
    const bool changed = argument.alias_info() && argument.alias_info()->isWrite();
    if ((!tensor && kind != c10::TypeKind::NumberType) || argument.is_out() ||
        changed != (shape == "!"))
      return "";
    shape += tensor ? "t" : "n";
  }
  return shape;
}

using Made = std::pair<c10::KernelFunction, std::optional<c10::impl::CppSignature>>;

template <class Result, class... Arguments>
Made typed(std::unique_ptr<BoxedOp> op, const c10::OperatorHandle& handle) {
  using Kernel = Typed<Result, Arguments...>;
  return {c10::KernelFunction::makeFromUnboxedFunctor<false, Kernel>(
              std::make_unique<Kernel>(std::move(op), handle)),
          c10::impl::CppSignature::make<Result(Arguments...)>()};
}

class Boxed final : public c10::OperatorKernel {
 public:
  explicit Boxed(std::unique_ptr<BoxedOp> op) : op_(std::move(op)) {}
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    (*op_)(handle, keys, stack);
  }

 private:
  std::unique_ptr<BoxedOp> op_;
};

Made kernel_of(std::unique_ptr<BoxedOp> op, const c10::OperatorHandle& handle) {
  using In = const Tensor&;
  using Number = const Scalar&;
  const std::string shape = shape_of(handle.schema());
  if (shape == "t") return typed<Tensor, In>(std::move(op), handle);
  if (shape == "tt") return typed<Tensor, In, In>(std::move(op), handle);
  if (shape == "tn") return typed<Tensor, In, Number>(std::move(op), handle);
  if (shape == "ttn") return typed<Tensor, In, In, Number>(std::move(op), handle);
  if (shape == "!t") return typed<Tensor&, Tensor&>(std::move(op), handle);
  if (shape == "!tt") return typed<Tensor&, Tensor&, In>(std::move(op), handle);
  if (shape == "!tn") return typed<Tensor&, Tensor&, Number>(std::move(op), handle);
  if (shape == "!ttn") return typed<Tensor&, Tensor&, In, Number>(std::move(op), handle);
  return {c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Boxed>(std::move(op))),
          std::nullopt};
}

}  // namespace

void register_op(const c10::OperatorHandle& handle, std::unique_ptr<BoxedOp> op) {
  static auto& kept = *new std::vector<c10::RegistrationHandleRAII>;
  auto [kernel, signature] = kernel_of(std::move(op), handle);
  kept.push_back(c10::Dispatcher::singleton().registerImpl(handle.operator_name(),
                                                           c10::DispatchKey::MPS, std::move(kernel),
                                                           signature, nullptr, "torch_anymps"));
}

}  // namespace anymps::aten
