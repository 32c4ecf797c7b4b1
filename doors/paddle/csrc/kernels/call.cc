// SPDX-License-Identifier: Apache-2.0
#include "kernels/call.h"

#include <algorithm>
#include <memory>

#include <paddle/common/enforce.h>
#include <paddle/phi/backends/context_pool.h>
#include <paddle/phi/core/generator.h>
#include "engine.h"
#include "lowering/builder.h"
#include "runtime/small_blocks.h"

namespace anymps::paddle {

namespace {

using lowering::Argument;

constexpr int64_t kStateWords = 7;

// A place in the stream of the generator.
constexpr const char* kState = "state";
// shape_of_1: the extents that Paddle has inferred for output 1.
constexpr const char* kShapeOf = "shape_of_";
// type_of_1: the type that Paddle has inferred for output 1.
constexpr const char* kTypeOf = "type_of_";
// How many outputs there are.
constexpr const char* kOutputs = "outputs";
// More words than any kernel draws for one element.
constexpr uint64_t kDrawsPerCall = uint64_t{1} << 32;

class OutputMemory final : public lowering::Prepared::Memory {
 public:
  OutputMemory(const phi::CustomContext& context, std::vector<DenseTensor*> outputs)
      : context_(context), outputs_(std::move(outputs)) {}
  void* allocate(size_t result, const amps_type& type) override {
    DenseTensor* output = outputs_[result];
    output->Resize(phi::make_ddim(std::vector<int64_t>(type.dims, type.dims + type.rank)));
    return context_.Alloc(output, to_paddle(type.dtype));
  }

 private:
  const phi::CustomContext& context_;
  std::vector<DenseTensor*> outputs_;
};

// Hands out a block that is there already.
class Ready final : public phi::Allocator {
 public:
  explicit Ready(AllocationPtr block) : block_(std::move(block)) {}
  AllocationPtr Allocate(size_t) override { return std::move(block_); }

 private:
  AllocationPtr block_;
};

void* allocate(const phi::CustomContext& context, DenseTensor& output, amps_dtype dtype,
               int64_t count) {
  const phi::DataType type = to_paddle(dtype);
  if (!output.Holder()) {
    if (auto block = small_block(context.GetPlace(), count * phi::SizeOf(type))) {
      Ready ready(std::move(block));
      return output.AllocateFrom(&ready, type);
    }
  }
  return context.Alloc(&output, type);
}

// The engine names the op of its own that failed; a program knows the kernel.
[[noreturn]] void raise(const lowering::EngineError& error, const std::string& kernel) {
  const std::string name = "[" + kernel + "] ", what = error.what();
  const std::string text = what.starts_with(name) ? what : name + what;
  if (error.status == AMPS_OUT_OF_MEMORY)
    PADDLE_THROW(common::errors::ResourceExhausted("%s", text));
  if (error.status == AMPS_UNSUPPORTED) PADDLE_THROW(common::errors::Unimplemented("%s", text));
  if (error.status == AMPS_INVALID_ARGUMENT || error.status == AMPS_NOT_FOUND)
    PADDLE_THROW(common::errors::InvalidArgument("%s", text));
  PADDLE_THROW(common::errors::External("%s", text));
}

}  // namespace

amps_view KernelCall::view_of(const DenseTensor& tensor) {
  const auto dtype = to_engine(tensor.dtype());
  if (!dtype)
    PADDLE_THROW(common::errors::Unimplemented("[%s] is not there for %s on mps", kernel_.name(),
                                               phi::DataTypeToString(tensor.dtype()).c_str()));
  // Gradients get some tensors without their elements, for their shape alone: whoever reads one all
  // the same reads zeros.
  static constexpr int64_t kNowhere[AMPS_MAX_RANK] = {};
  static constexpr int64_t kZeros[2] = {};
  const phi::DenseTensorMeta& meta = tensor.meta();
  const phi::Allocation* holder = tensor.Holder().get();
  const int rank = meta.dims.size();
  if (holder && holder->ptr())
    return {static_cast<char*>(holder->ptr()) + meta.offset, meta.dims.Get(), meta.strides.Get(),
            *dtype, rank};
  const bool empty =
      std::find(meta.dims.Get(), meta.dims.Get() + rank, 0) != meta.dims.Get() + rank;
  return {empty ? nullptr : const_cast<int64_t*>(kZeros), meta.dims.Get(),
          empty ? meta.strides.Get() : kNowhere, *dtype, rank};
}

void KernelCall::add(const DenseTensor& tensor) {
  const std::span<amps_view> views = views_.take(1);
  views[0] = view_of(tensor);
  Argument& argument = arguments_.emplace_back();
  argument.kind = Argument::Kind::kTensor;
  argument.views = views;
}

void KernelCall::add(const ::paddle::optional<DenseTensor>& tensor) {
  if (tensor)
    add(*tensor);
  else
    arguments_.push_back({});
}

void KernelCall::add(const std::vector<const DenseTensor*>& tensors) {
  const std::span<amps_view> views = views_.take(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    views[i] = tensors[i] ? view_of(*tensors[i]) : lowering::kAbsent;
  arguments_.push_back({.kind = Argument::Kind::kTensors, .views = views});
}

void KernelCall::add(const std::vector<const phi::TensorBase*>& tensors) {
  std::vector<const DenseTensor*> dense;
  for (const phi::TensorBase* tensor : tensors) {
    if (tensor && !DenseTensor::classof(tensor))
      PADDLE_THROW(
          common::errors::Unimplemented("[%s] takes dense tensors on mps", kernel_.name()));
    dense.push_back(static_cast<const DenseTensor*>(tensor));
  }
  add(dense);
}

void KernelCall::add(const ::paddle::optional<std::vector<const DenseTensor*>>& tensors) {
  if (tensors)
    add(*tensors);
  else
    arguments_.push_back({});
}

void KernelCall::add(const phi::SelectedRows& rows) {
  const std::span<int64_t> count = ints_.take(1);
  count[0] = std::ssize(rows.rows());
  const std::span<amps_view> views = views_.take(1);
  views[0] = {const_cast<int64_t*>(rows.rows().data()), count.data(), nullptr, AMPS_I64, 1};
  arguments_.push_back(Argument::tensor(views.data()));
  add(rows.value());
}

void KernelCall::add_integer(Argument::Kind kind, int64_t number) {
  Argument& argument = arguments_.emplace_back();
  argument.kind = kind;
  argument.i = number;
}

void KernelCall::add(double number) {
  Argument& argument = arguments_.emplace_back();
  argument.kind = Argument::Kind::kFloat;
  argument.f = number;
}

void KernelCall::add(const std::string& text) {
  arguments_.push_back({.kind = Argument::Kind::kText, .text = text});
}

void KernelCall::add(const std::vector<int64_t>& numbers) {
  arguments_.push_back({.kind = Argument::Kind::kInts, .ints = numbers});
}

void KernelCall::add(const std::vector<double>& numbers) {
  arguments_.push_back({.kind = Argument::Kind::kFloats, .floats = numbers});
}

void KernelCall::add(const std::vector<phi::Scalar>& numbers) {
  const bool complex = std::any_of(numbers.begin(), numbers.end(), [](const phi::Scalar& number) {
    return number.dtype() == phi::DataType::COMPLEX64 ||
           number.dtype() == phi::DataType::COMPLEX128;
  });
  const std::span<double> values = floats_.take(numbers.size() * (complex ? 2 : 1));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (complex) {
      const auto value = numbers[i].to<phi::dtype::complex<double>>();
      values[2 * i] = value.real;
      values[2 * i + 1] = value.imag;
    } else {
      values[i] = numbers[i].to<double>();
    }
  }
  arguments_.push_back({.kind = Argument::Kind::kFloats, .floats = values});
}

// Of several texts a kernel wants to know whether there is one that says something.
void KernelCall::add(const std::vector<std::string>& texts) {
  std::vector<bool> said;
  for (const std::string& text : texts) said.push_back(!text.empty());
  add_copied_ints(said);
}

void KernelCall::add(const phi::Scalar& number) {
  switch (number.dtype()) {
    case phi::DataType::BOOL:
      return add(number.to<bool>());
    case phi::DataType::FLOAT32:
    case phi::DataType::FLOAT64:
    case phi::DataType::FLOAT16:
    case phi::DataType::BFLOAT16:
      return add(number.to<double>());
    case phi::DataType::COMPLEX64:
    case phi::DataType::COMPLEX128: {
      const auto value = number.to<phi::dtype::complex<double>>();
      arguments_.push_back(
          {.kind = Argument::Kind::kComplex, .f = value.real, .imaginary = value.imag});
      return;
    }
    default:
      return add(number.to<int64_t>());
  }
}

void KernelCall::add(phi::DataType dtype) {
  const auto known = to_engine(dtype);
  if (known)
    add_integer(Argument::Kind::kDType, *known);
  else
    arguments_.push_back({});  // not given
}

void KernelCall::add(const std::vector<DenseTensor*>& outputs) {
  for (DenseTensor* output : outputs) outputs_.push_back(output);
}

void KernelCall::add_random_state(const phi::CustomContext& context) {
  const auto [seed, offset] = context.GetGenerator()->IncrementOffset(kDrawsPerCall);
  state_ = {static_cast<int32_t>(offset), static_cast<int32_t>(offset >> 32), 0, 0,
            static_cast<int32_t>(seed),   static_cast<int32_t>(seed >> 32),   0};
  static constexpr int64_t kDims[] = {kStateWords};
  const std::span<amps_view> views = views_.take(1);
  views[0] = {state_.data(), kDims, nullptr, AMPS_I32, 1};
  arguments_.push_back(Argument::tensor(views.data()));
}

// What a kernel's row asks for behind Paddle's own arguments.
void KernelCall::add_asked(const phi::CustomContext& context) {
  for (size_t i = arguments_.size(); i < kernel_.arguments(); ++i) {
    const std::string& name = kernel_.argument(i);
    if (name == kState)
      add_random_state(context);
    else if (name == kOutputs)
      add(static_cast<int64_t>(outputs_.size()));
    else if (name.starts_with(kShapeOf))
      add_shape_of(outputs_[name.back() - '0']);
    else if (name.starts_with(kTypeOf))
      add(outputs_[name.back() - '0']->dtype());
  }
}

// Of an output that is not wanted: nothing, as no step reads it.
void KernelCall::add_shape_of(const DenseTensor* output) {
  if (output)
    add_copied_ints(phi::vectorize(output->dims()));
  else
    arguments_.push_back({});
}

void KernelCall::run(const phi::CustomContext& context) try {
  add_asked(context);
  lowering::Few<lowering::Wanted, 8> wanted;
  for (DenseTensor* output : outputs_)
    wanted.push_back({output != nullptr, output ? to_engine(output->dtype()) : std::nullopt});
  const lowering::Prepared& prepared =
      kernel_.prepare(engine(), device(context.GetPlace().GetDeviceId()), arguments_, wanted);
  lowering::Few<DenseTensor*, 8> outputs(prepared.results().size());
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (prepared.places()[i] >= 0) outputs[prepared.places()[i]] = outputs_[i];
  if (outputs.empty()) return;
  if (!prepared.sized()) {
    OutputMemory memory(context, {outputs.begin(), outputs.end()});
    return prepared.run(arguments_, memory);
  }
  lowering::Few<amps_view, 8> views;
  std::vector<std::shared_ptr<phi::Allocation>> kept;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const amps_type& type = prepared.results()[i];
    int64_t count = 1;
    for (int32_t axis = 0; axis < type.rank; ++axis) count *= type.dims[axis];
    if (outputs[i]->numel() != count)
      outputs[i]->Resize(phi::make_ddim(std::vector<int64_t>(type.dims, type.dims + type.rank)));
    // What lies on the host (numbers of an optimizer) is replaced and freed, though it may be an
    // input as well. What lies on another device stays there: Paddle takes the device of a call
    // from one of the inputs, which may be a learning rate.
    const auto& holder = outputs[i]->Holder();
    const phi::CustomContext* owner = &context;
    if (holder && holder->place() != context.GetPlace()) {
      if (holder->place().GetType() == phi::AllocationType::CUSTOM)
        owner = static_cast<const phi::CustomContext*>(
            phi::DeviceContextPool::Instance().Get(holder->place()));
      else
        kept.push_back(holder);
    }
    void* data = allocate(*owner, *outputs[i], type.dtype, count);
    views.push_back({data, type.dims, nullptr, type.dtype, type.rank});
  }
  prepared.run(arguments_, views, nullptr);
} catch (const lowering::EngineError& error) {
  raise(error, kernel_.name());
}

}  // namespace anymps::paddle
