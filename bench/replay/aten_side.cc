// SPDX-License-Identifier: Apache-2.0
#include "aten_side.h"

#include <chrono>

namespace bench {

namespace {

double nanoseconds_of(const auto& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

const c10::OperatorHandle& handle_of(const std::string& op) {
  static std::unordered_map<std::string, c10::OperatorHandle> found;
  auto at = found.find(op);
  if (at == found.end()) {
    const size_t dot = op.find('.');
    at = found
             .emplace(op, c10::Dispatcher::singleton().findSchemaOrThrow(
                              op.substr(0, dot).c_str(), op.substr(dot + 1).c_str()))
             .first;
  }
  return at->second;
}

at::Tensor drawn(const Storage& s) {
  const auto count = s.bytes / static_cast<int64_t>(c10::elementSize(s.dtype));
  const at::TensorOptions options(s.dtype);
  if (!at::isFloatingType(s.dtype))
    return at::randint(static_cast<int64_t>(s.least), static_cast<int64_t>(s.greatest) + 1, {count},
                       options);
  return at::randn({count}, options).mul_(s.deviation).add_(s.mean).clamp_(s.least, s.greatest);
}

}  // namespace

AtenSide::AtenSide(const Recording& recording)
    : recording_(recording), storages_(recording.storages.size()) {}

void AtenSide::fill() {
  at::manual_seed(0);
  for (size_t s = 0; s < storages_.size(); ++s)
    if (recording_.storages[s].there) storages_[s] = drawn(recording_.storages[s]).storage();
}

at::Tensor AtenSide::tensor(int64_t which) const {
  const Tensor& t = recording_.tensors[static_cast<size_t>(which)];
  return at::empty({0}, at::TensorOptions(t.dtype))
      .set_(storages_[static_cast<size_t>(t.storage)], t.offset, t.dims, t.strides);
}

c10::IValue AtenSide::value(const Arg& arg, const c10::TypePtr& type) const {
  if (const auto optional = type->cast<c10::OptionalType>()) {
    if (arg.kind == 'n') return {};
    if (arg.s == "torch.contiguous_format")
      return static_cast<int64_t>(at::MemoryFormat::Contiguous);
    // Other formats keep the input's strides, as devices and layouts are the input's.
    if (arg.kind == 's' && optional->getElementType() != c10::StringType::get()) return {};
    return value(arg, optional->getElementType());
  }
  if (const auto list = type->cast<c10::ListType>()) {
    c10::impl::GenericList items(list->getElementType());
    for (const Arg& item : arg.list) items.push_back(value(item, list->getElementType()));
    return items;
  }
  switch (arg.kind) {
    case 't':
      return tensor(arg.i);
    case 'i':
      if (type == c10::TensorType::get()) return at::scalar_tensor(arg.i, at::kLong);
      return type == c10::FloatType::get() ? c10::IValue(arg.f) : c10::IValue(arg.i);
    case 'd':
      return arg.i;
    case 'f':
      return arg.f;
    case 'b':
      return arg.i != 0;
    case 's':
      return arg.s;
    default:
      return {};
  }
}

double AtenSide::run(const RecordedCall& call) {
  if (call.free) {
    for (const int64_t s : call.makes)
      storages_[static_cast<size_t>(s)] =
          at::empty({recording_.storages[static_cast<size_t>(s)].bytes}, at::kByte).storage();
    return 0;
  }
  const c10::OperatorHandle& handle = handle_of(call.op);
  torch::jit::Stack stack;
  for (size_t i = 0; i < call.args.size(); ++i)
    stack.push_back(value(call.args[i], handle.schema().arguments()[i].type()));
  double took = 0;
  try {
    took = nanoseconds_of([&] { handle.callBoxed(&stack); });
  } catch (const c10::Error& error) {
    throw std::runtime_error(call.op + ": " + error.what_without_backtrace());
  }
  std::vector<c10::IValue> results;
  for (c10::IValue& result : stack)
    if (result.isTensorList())
      for (const at::Tensor& item : result.toTensorVector()) results.emplace_back(item);
    else
      results.push_back(std::move(result));
  for (size_t i = 0; i < std::min(results.size(), call.results.size()); ++i)
    if (call.results[i].kind == 't') {
      const Tensor& t = recording_.tensors[static_cast<size_t>(call.results[i].i)];
      storages_[static_cast<size_t>(t.storage)] = results[i].toTensor().storage();
    }
  return took;
}

double AtenSide::release(const RecordedCall& call) {
  return nanoseconds_of([&] {
    for (const int64_t s : call.last_uses) storages_[static_cast<size_t>(s)] = {};
  });
}

}  // namespace bench
