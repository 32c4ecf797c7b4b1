// SPDX-License-Identifier: Apache-2.0
// Reference kernel of fused programs: runs the reference kernel of each instruction in turn, with
// whole tensors as temporaries, and stores the outputs at the end. So a fused graph gives, bit for
// bit, what the unfused one gives, and an output may lie where an input does.
#include <cstring>

#include "drivers/reference/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_program.h"

namespace anymps {

namespace {

using Bytes = std::vector<std::byte>;

TensorDesc strided(DType dtype, Shape shape, Strides strides) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.shape = std::move(shape);
  desc.strides = std::move(strides);
  return desc;
}

template <typename From>
Bytes scalar_bytes(DType dtype, From value) {
  Bytes bytes(size_of(dtype));
  dispatch<kAny>(dtype, [&]<typename T>() {
    const T element = scalar::convert<T>(value);
    std::memcpy(bytes.data(), &element, sizeof(T));
  });
  return bytes;
}

// A parameter as it is stored, handed to fn.
template <typename Fn>
auto with_parameter(const View& vector, size_t element, Fn&& fn) {
  const int64_t at = static_cast<int64_t>(element) * vector.stride(0);
  return vector.dtype == DType::kI64 ? fn(vector.as<int64_t>()[at]) : fn(vector.as<double>()[at]);
}

class Evaluation {
 public:
  explicit Evaluation(const ReferenceArgs& args)
      : args_(args), program_(ElementwiseProgram::decode(args.attrs.ints("program"))) {
    std::vector<DType> dtypes;
    for (const View& view : args.in) dtypes.push_back(view.dtype);
    types_ = program_.infer(dtypes);
    for (size_t i = 0; i < program_.input_count(); ++i)
      if (program_.holds_parameters(i)) program_.check_parameters(i, args.in[i].shape());
    results_.resize(program_.instructions().size());
  }

  void run() {
    for (size_t i = 0; i < results_.size(); ++i) run(i);
    for (size_t k = 0; k < program_.outputs().size(); ++k)
      store(args_.out[k], program_.outputs()[k]);
  }

 private:
  const Shape& shape() const { return args_.out[0].shape(); }

  void run(size_t number) {
    const ElementwiseProgram::Instruction& instruction = program_.instructions()[number];
    KernelRequest request;
    request.op = instruction.op;
    request.attrs = instruction.attrs;
    for (const auto& [name, arg] : instruction.parameters)
      request.attrs.set({name, with_parameter(args_.in[arg.index], arg.element, [](auto value) {
                           return static_cast<double>(value);
                         })});
    std::vector<void*> in;
    std::vector<Bytes> numbers;
    for (size_t k = 0; k < instruction.args.size(); ++k)
      in.push_back(operand(instruction.args[k], types_.args[number][k], request.inputs, numbers));
    // Every operand is read with the output's shape: kernels that do not broadcast need no more.
    for (auto& input : request.inputs)
      if (input) *input = strided(input->dtype, shape(), broadcast_strides(*input, shape()));
    request.outputs = {TensorDesc(types_.results[number], shape())};
    results_[number].resize(request.out().bytes());
    void* result = results_[number].data();
    const KernelPtr kernel = make_reference_kernel(request);
    if (!kernel)
      fail(Code::kUnsupported, "[fused_elementwise] op '{}' has no reference", request.op->name);
    kernel->run({in.data(), &result, nullptr, nullptr});
  }

  // Where the argument is; its description goes to `descs`, a number's bytes to `numbers`.
  void* operand(const ProgramArg& arg, DType dtype, std::vector<std::optional<TensorDesc>>& descs,
                std::vector<Bytes>& numbers) {
    switch (arg.kind) {
      case ProgramArg::Kind::kAbsent:
        descs.emplace_back();
        return nullptr;
      case ProgramArg::Kind::kInput: {
        const View& view = args_.in[arg.index];
        descs.emplace_back(strided(dtype, view.shape(), view.strides()));
        return view.data;
      }
      case ProgramArg::Kind::kResult:
        descs.emplace_back(TensorDesc(dtype, shape()));
        return results_[arg.index].data();
      case ProgramArg::Kind::kImmediate:
        numbers.push_back(scalar_bytes(dtype, arg.value));
        break;
      case ProgramArg::Kind::kParameter:
        numbers.push_back(with_parameter(args_.in[arg.index], arg.element,
                                         [&](auto value) { return scalar_bytes(dtype, value); }));
        break;
    }
    descs.emplace_back(TensorDesc(dtype, Shape{}));
    return numbers.back().data();
  }

  void store(const View& out, size_t number) const {
    const size_t element = size_of(out.dtype);
    const std::byte* from = results_[number].data();
    for_each_index(out.shape(), [&](const Shape& index) {
      std::memcpy(out.data + out.offset(index) * static_cast<int64_t>(element), from, element);
      from += element;
    });
  }

  const ReferenceArgs& args_;
  ElementwiseProgram program_;
  ElementwiseProgram::Types types_;
  std::vector<Bytes> results_;
};

}  // namespace

REFERENCE(fused_elementwise) { Evaluation(args).run(); }

}  // namespace anymps
