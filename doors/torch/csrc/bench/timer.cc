// SPDX-License-Identifier: Apache-2.0
// How long calls of an op take, on the tensors' own device, without Python between them:
// torch.ops.anymps.time_calls, which torch_anymps.native and fallback_bench use.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>
#include "device/events.h"

namespace anymps::aten {

namespace {

using torch::jit::Stack;

// Python's values come with the types that they have; a schema may want a wider one.
c10::IValue as_wanted(const c10::IValue& value, const c10::Type& wanted) {
  if (wanted.kind() == c10::TypeKind::OptionalType)
    return value.isNone() ? value : as_wanted(value, *wanted.containedType(0));
  if (wanted.kind() == c10::TypeKind::FloatType && value.isInt())
    return static_cast<double>(value.toInt());
  if (wanted.kind() != c10::TypeKind::ListType || !value.isTensorList()) return value;
  if (wanted.containedType(0)->kind() != c10::TypeKind::OptionalType) return value;
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(tensor);
  return list;
}

// (name, overload, arguments, named arguments, calls) -> seconds for all of the calls.
void time_calls(const c10::OperatorHandle& /*self*/, Stack* stack) {
  const int64_t calls = torch::jit::pop(*stack).toInt();
  const auto named = torch::jit::pop(*stack).toGenericDict();
  const auto positional = torch::jit::pop(*stack).toList();
  const std::string overload = torch::jit::pop(*stack).toStringRef();
  const std::string name = torch::jit::pop(*stack).toStringRef();
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());

  const auto& formal = op.schema().arguments();
  TORCH_CHECK(positional.size() <= formal.size(), name, ": more arguments than it has");
  Stack given;
  for (size_t i = 0; i < positional.size(); ++i)
    given.push_back(as_wanted(positional.get(i), *formal[i].type()));
  std::unordered_map<std::string, c10::IValue> rest;
  for (const c10::Argument& argument : formal)
    if (named.contains(argument.name()))
      rest.emplace(argument.name(), as_wanted(named.at(argument.name()), *argument.type()));
  op.schema().checkAndNormalizeInputs(given, rest);

  Stack call;
  call.reserve(std::max(given.size(), op.schema().returns().size()));
  const Moment start = now();
  for (int64_t i = 0; i < calls; ++i) {
    call.assign(given.begin(), given.end());
    op.callBoxed(call);
    call.clear();
  }
  // Calls are done when they return: there is nothing to wait for.
  torch::jit::push(*stack, milliseconds(start, now()) / 1e3);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(anymps, m) {
  m.def(
      "time_calls(str name, str overload, Any[] arguments, Dict(str, Any) named, int calls) -> "
      "float",
      torch::CppFunction::makeFromBoxedFunction<&time_calls>());
}

}  // namespace anymps::aten
