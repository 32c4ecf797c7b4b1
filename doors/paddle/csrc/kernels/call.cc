// SPDX-License-Identifier: Apache-2.0
#include "kernels/call.h"

#include "engine.h"
#include "lowering/builder.h"
#include "paddle/common/enforce.h"
#include "paddle/phi/core/generator.h"

namespace anymps::paddle {

namespace {

using lowering::Argument;

constexpr int64_t kStateWords = 7;

// A place in the stream of the generator.
constexpr const char* kState = "state";
// shape_of_1: the extents that Paddle has inferred for output 1.
constexpr const char* kShapeOf = "shape_of_";
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

[[noreturn]] void raise(const lowering::EngineError& error) {
  if (error.status == AMPS_OUT_OF_MEMORY)
    PADDLE_THROW(common::errors::ResourceExhausted("%s", error.what()));
  if (error.status == AMPS_UNSUPPORTED)
    PADDLE_THROW(common::errors::Unimplemented("%s", error.what()));
  if (error.status == AMPS_INVALID_ARGUMENT || error.status == AMPS_NOT_FOUND)
    PADDLE_THROW(common::errors::InvalidArgument("%s", error.what()));
  PADDLE_THROW(common::errors::External("%s", error.what()));
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
  const bool held = tensor.initialized() || tensor.numel() == 0;
  const void* data = !held ? kZeros : tensor.numel() > 0 ? tensor.data() : nullptr;
  return {const_cast<void*>(data), tensor.dims().Get(), held ? tensor.strides().Get() : kNowhere,
          *dtype, tensor.dims().size()};
}

void KernelCall::add(const DenseTensor& tensor) {
  views_.push_back({view_of(tensor)});
  arguments_.push_back(Argument::tensor(views_.back().data()));
}

void KernelCall::add(const ::paddle::optional<DenseTensor>& tensor) {
  if (tensor)
    add(*tensor);
  else
    arguments_.emplace_back();
}

void KernelCall::add(const std::vector<const DenseTensor*>& tensors) {
  std::vector<amps_view> views;
  for (const DenseTensor* tensor : tensors)
    views.push_back(tensor ? view_of(*tensor) : amps_view{nullptr, nullptr, nullptr, AMPS_F32, -1});
  views_.push_back(std::move(views));
  Argument& argument = arguments_.emplace_back();
  argument.kind = Argument::Kind::kTensors;
  argument.views = views_.back();
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
    arguments_.emplace_back();
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
  Argument& argument = arguments_.emplace_back();
  argument.kind = Argument::Kind::kText;
  argument.text = text;
}

void KernelCall::add(const std::vector<int>& numbers) {
  add(std::vector<int64_t>(numbers.begin(), numbers.end()));
}

void KernelCall::add(const std::vector<bool>& flags) {
  add(std::vector<int64_t>(flags.begin(), flags.end()));
}

void KernelCall::add(const std::vector<int64_t>& numbers) {
  ints_.push_back(numbers);
  Argument& argument = arguments_.emplace_back();
  argument.kind = Argument::Kind::kInts;
  argument.ints = ints_.back();
}

void KernelCall::add(const std::vector<float>& numbers) {
  add(std::vector<double>(numbers.begin(), numbers.end()));
}

void KernelCall::add(const std::vector<double>& numbers) {
  floats_.push_back(numbers);
  Argument& argument = arguments_.emplace_back();
  argument.kind = Argument::Kind::kFloats;
  argument.floats = floats_.back();
}

void KernelCall::add(const std::vector<phi::Scalar>& numbers) {
  std::vector<double> values;
  for (const phi::Scalar& number : numbers) values.push_back(number.to<double>());
  add(values);
}

// Of several texts a kernel wants to know whether there is one that says something.
void KernelCall::add(const std::vector<std::string>& texts) {
  std::vector<int64_t> said;
  for (const std::string& text : texts) said.push_back(!text.empty());
  add(said);
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
    case phi::DataType::COMPLEX128:
      PADDLE_THROW(
          common::errors::Unimplemented("[%s] takes no complex number on mps", kernel_.name()));
    default:
      return add(number.to<int64_t>());
  }
}

void KernelCall::add(phi::DataType dtype) {
  const auto known = to_engine(dtype);
  if (known)
    add_integer(Argument::Kind::kDType, *known);
  else
    arguments_.emplace_back();  // not given
}

void KernelCall::add(const std::vector<DenseTensor*>& outputs) {
  outputs_.insert(outputs_.end(), outputs.begin(), outputs.end());
}

void KernelCall::add_random_state(const phi::CustomContext& context) {
  const auto [seed, offset] = context.GetGenerator()->IncrementOffset(kDrawsPerCall);
  state_ = {static_cast<int32_t>(offset), static_cast<int32_t>(offset >> 32), 0, 0,
            static_cast<int32_t>(seed),   static_cast<int32_t>(seed >> 32),   0};
  static constexpr int64_t kDims[] = {kStateWords};
  views_.push_back({{state_.data(), kDims, nullptr, AMPS_I32, 1}});
  arguments_.push_back(Argument::tensor(views_.back().data()));
}

// What a kernel's row asks for behind Paddle's own arguments.
void KernelCall::add_asked(const phi::CustomContext& context) {
  for (size_t i = arguments_.size(); i < kernel_.arguments(); ++i) {
    const std::string& name = kernel_.argument(i);
    if (name == kState)
      add_random_state(context);
    else if (name.starts_with(kShapeOf))
      add(phi::vectorize(outputs_.at(name.back() - '0')->dims()));
  }
}

void KernelCall::run(const phi::CustomContext& context) try {
  add_asked(context);
  std::vector<lowering::Wanted> wanted;
  for (DenseTensor* output : outputs_) {
    wanted.push_back({output != nullptr, {}});
    if (output) wanted.back().dtype = to_engine(output->dtype());
  }
  const lowering::Prepared& prepared =
      kernel_.prepare(engine(), device(context.GetPlace().GetDeviceId()), arguments_, wanted);
  std::vector<DenseTensor*> outputs(prepared.results().size());
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (prepared.places()[i] >= 0) outputs[prepared.places()[i]] = outputs_[i];
  if (outputs.empty()) return;
  if (!prepared.sized()) {
    OutputMemory memory(context, std::move(outputs));
    return prepared.run(arguments_, memory);
  }
  std::vector<amps_view> views;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const amps_type& type = prepared.results()[i];
    int64_t count = 1;
    for (int32_t axis = 0; axis < type.rank; ++axis) count *= type.dims[axis];
    if (outputs[i]->numel() != count)
      outputs[i]->Resize(phi::make_ddim(std::vector<int64_t>(type.dims, type.dims + type.rank)));
    void* data = context.Alloc(outputs[i], to_paddle(type.dtype));
    views.push_back({data, type.dims, nullptr, type.dtype, type.rank});
  }
  prepared.run(arguments_, views, nullptr);
} catch (const lowering::EngineError& error) {
  raise(error);
}

}  // namespace anymps::paddle
