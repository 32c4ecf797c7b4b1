// SPDX-License-Identifier: Apache-2.0
#include "runtime/structural.h"

#include "runtime/executable.h"

namespace anymps {

namespace {

std::map<std::string, StructuralOp, std::less<>>& table() {
  // Never destroyed: a stream may still compute when the program ends.
  static auto& ops = *new std::map<std::string, StructuralOp, std::less<>>;
  return ops;
}

}  // namespace

StructuralRegistrar::StructuralRegistrar(const char* op, StructuralFn run, CapturesFn captures) {
  table()[op] = {run, captures};
}

const StructuralOp& structural_op(const Op& op) {
  auto it = table().find(op.name);
  if (it == table().end()) fail(Code::kUnsupported, "[{}] cannot be run", op.name);
  return it->second;
}

std::optional<Tensor> Variables::get(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = values_.find(name);
  return it == values_.end() ? std::nullopt : std::optional(it->second);
}

void Variables::set(const std::string& name, Tensor value) {
  std::lock_guard lock(mutex_);
  std::swap(values_[name], value);  // the one before goes without the lock: it may be another's
}

std::vector<Tensor> StructuralCall::run(const char* body, std::vector<Tensor> feeds) const {
  return bodies_.at(body)->run_body(std::move(feeds), state);
}

std::vector<int64_t> StructuralCall::numbers(const Tensor& tensor) const {
  return device.integers(tensor, state.queue);
}

int64_t StructuralCall::number(const Tensor& tensor) const {
  if (tensor.desc.count() != 1)
    fail(Code::kInvalidArgument, "[{}] one element is needed, {} is given", node.op->name,
         to_string(tensor.desc));
  char bytes[16];
  device.driver().copy_to_host(bytes, tensor.data(), size_of(tensor.desc.dtype), &state.queue);
  return integer_at(tensor.desc.dtype, bytes);
}

Tensor StructuralCall::scalar(DType dtype, int64_t number) const {
  Tensor tensor;
  set_scalar(tensor, dtype, number);
  return tensor;
}

void StructuralCall::set_scalar(Tensor& tensor, DType dtype, int64_t number) const {
  if (!tensor.buffer || tensor.buffer.use_count() > 1) tensor = device.empty(dtype, {});
  const auto narrow = static_cast<int32_t>(number);
  const bool truth = number != 0;
  const void* from = dtype == DType::kI64   ? static_cast<const void*>(&number)
                     : dtype == DType::kI32 ? static_cast<const void*>(&narrow)
                                            : static_cast<const void*>(&truth);
  device.driver().copy_to_device(tensor.data(), from, size_of(dtype), &state.queue);
}

Tensor StructuralCall::copy(const Tensor& tensor) const {
  Tensor result = device.empty(tensor.desc.dtype, tensor.desc.shape);
  result.strings = tensor.strings;
  device.copy(tensor, result, state.queue);
  return result;
}

Tensor piece(const Tensor& tensor, int64_t axis, int64_t first, int64_t count) {
  Tensor result = tensor;
  const size_t at = axis;
  result.desc.shape[at] = count;
  result.offset =
      static_cast<int64_t>(tensor.offset) + (count ? first : 0) * tensor.desc.strides[at] *
                                                static_cast<int64_t>(size_of(tensor.desc.dtype));
  return result;
}

static void remove(SmallVector<int64_t, 6>& list, int64_t axis) {
  SmallVector<int64_t, 6> rest;
  for (size_t i = 0; i < list.size(); ++i)
    if (static_cast<int64_t>(i) != axis) rest.push_back(list[i]);
  list = std::move(rest);
}

Tensor slice_at(const Tensor& tensor, int64_t axis, int64_t index) {
  Tensor result = piece(tensor, axis, index, 1);
  remove(result.desc.shape, axis);
  remove(result.desc.strides, axis);
  return result;
}

Tensor list_of(DType dtype, std::vector<Tensor> items) {
  Tensor list;
  list.desc.dtype = dtype;
  list.container = Container::kSequence;
  list.items = std::make_shared<const std::vector<Tensor>>(std::move(items));
  return list;
}

Tensor join(const StructuralCall& call, const std::vector<Tensor>& items, int64_t axis, bool stack,
            const ValueType& empty) {
  const std::string& op = call.node.op->name;
  Shape shape;
  if (items.empty())
    for (const Dim& dim : empty.shape) shape.push_back(dim.known() ? dim.value() : 0);
  else
    shape = items[0].desc.shape;
  const DType dtype = items.empty() ? empty.dtype : items[0].desc.dtype;
  const int64_t rank = std::ssize(shape) + stack;
  const size_t at = normalize_axis(axis, rank, op.c_str());
  int64_t extent = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    Shape other = items[i].desc.shape;
    if (!stack && other.size() == shape.size()) {
      extent += other[at];
      other[at] = shape[at];
    }
    if (other != shape)
      fail(Code::kInvalidArgument, "[{}] tensor {} is {}, which does not go with {}", op, i,
           to_string(items[i].desc.shape), to_string(items[0].desc.shape));
  }
  Shape whole;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    if (i == at)
      whole.push_back(stack ? std::ssize(items) : extent);
    else
      whole.push_back(shape[stack && i > at ? i - 1 : i]);
  }
  Tensor result = call.device.empty(dtype, whole);
  int64_t first = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t count = stack ? 1 : items[i].desc.shape[at];
    if (items[i].desc.count() > 0) {
      const auto along = static_cast<int64_t>(at);
      const Tensor place =
          stack ? slice_at(result, along, first) : piece(result, along, first, count);
      call.device.copy(items[i], place, call.state.queue);
    }
    first += count;
  }
  return result;
}

}  // namespace anymps
