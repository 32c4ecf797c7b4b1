// SPDX-License-Identifier: Apache-2.0
// Fused elementwise programs: the instructions of ops/elementwise/elementwise_program.h as one tile
// program. Each gives what the op's own kernel gives, bit for bit.
#include <algorithm>

#include "drivers/cpu/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_program.h"

namespace anymps::cpu {

namespace {

using Value = TileKernelBuilder::Value;

double rounded(DType dtype, double value) {
  if (dtype == DType::kF16) return static_cast<double>(Half(static_cast<float>(value)));
  if (dtype == DType::kBF16) return static_cast<double>(BFloat(static_cast<float>(value)));
  return value;
}

class FusedBuilder {
 public:
  explicit FusedBuilder(const KernelRequest& request)
      : request_(request),
        program_(ElementwiseProgram::decode(request.attrs.ints("program"))),
        builder_(request.out().shape),
        inputs_(request.inputs.size()) {
    std::vector<DType> dtypes;
    for (const auto& input : request.inputs) dtypes.push_back(input->dtype);
    types_ = program_.infer(dtypes);
    for (size_t i = 0; i < program_.input_count(); ++i)
      if (program_.holds_parameters(i)) program_.check_parameters(i, request.in(i).shape);
  }

  KernelPtr build(std::string& why) {
    const size_t count = program_.instructions().size();
    find_uses();
    results_.resize(count);
    for (size_t i = 0; i < count; ++i)
      if ((uses_[i] || stored_[i]) && !add(i, why)) return nullptr;
    for (size_t k = 0; k < program_.outputs().size(); ++k)
      builder_.output(k, request_.out(k), results_[program_.outputs()[k]]);
    if (std::max(builder_.size(), program_.outputs().size()) > TileKernelBuilder::kMaxValues)
      return too_long(why);
    builder_.join_steps();
    return builder_.build();
  }

 private:
  static KernelPtr too_long(std::string& why) { return refuse(why, "the program is too long"); }

  // Results that nothing reads and no output is are not computed.
  void find_uses() {
    const size_t count = program_.instructions().size();
    uses_.assign(count, false);
    stored_.assign(count, false);
    for (const size_t output : program_.outputs()) stored_[output] = true;
    for (size_t i = count; i-- > 0;) {
      if (!uses_[i] && !stored_[i]) continue;
      for (const ProgramArg& arg : program_.instructions()[i].args)
        if (arg.kind == ProgramArg::Kind::kResult) uses_[arg.index] = true;
    }
  }

  bool add(size_t number, std::string& why) {
    const ElementwiseProgram::Instruction& instruction = program_.instructions()[number];
    const Op& op = *instruction.op;
    const DType dtype = types_.results[number];
    std::vector<std::optional<Value>> args;
    for (size_t k = 0; k < instruction.args.size(); ++k) {
      const DType type = types_.args[number][k];
      const ProgramArg& arg = instruction.args[k];
      if (is_complex(type) &&
          (arg.kind == ProgramArg::Kind::kImmediate || arg.kind == ProgramArg::Kind::kParameter))
        return refuse<bool>(why, "a complex number");
      args.push_back(argument(arg, type));
    }
    if (op.name == "clamp") take_bounds(instruction, dtype, args);
    std::optional<Value> result = emit(builder_, op, instruction.attrs, args, dtype, why);
    if (!result) return false;
    for (const auto& [name, arg] : instruction.parameters) {
      if (op.name == "clamp") continue;
      const std::optional<size_t> place = place_of_attribute(op, name);
      if (!place)
        return refuse<bool>(why, fmt::format("attribute '{}' of {} as a parameter", name, op.name));
      builder_.set_param(*result, *place, parameter_of(arg));
    }
    // What later instructions read is what the op's own kernel would have stored.
    if (is_half(dtype) && uses_[number] && !op.is(kNoRounding))
      result = builder_.call(*find_tile_op("round", dtype), {*result});
    results_[number] = *result;
    if (builder_.size() > TileKernelBuilder::kMaxValues) return too_long(why) != nullptr;
    return true;
  }

  std::optional<Value> argument(const ProgramArg& arg, DType dtype) {
    switch (arg.kind) {
      case ProgramArg::Kind::kAbsent:
        break;
      case ProgramArg::Kind::kResult:
        return results_[arg.index];
      case ProgramArg::Kind::kImmediate:
        return builder_.constant(is_half(dtype) ? DType::kF32 : dtype, rounded(dtype, arg.value));
      case ProgramArg::Kind::kParameter:
        return builder_.parameter(parameter_of(arg), dtype);
      case ProgramArg::Kind::kInput:
        if (!inputs_[arg.index])
          inputs_[arg.index] = builder_.input(arg.index, request_.in(arg.index));
        return inputs_[arg.index];
    }
    return std::nullopt;
  }

  // A bound that is a parameter is passed as a tensor of one element.
  void take_bounds(const ElementwiseProgram::Instruction& instruction, DType dtype,
                   std::vector<std::optional<Value>>& args) {
    for (const auto& [name, arg] : instruction.parameters) {
      const size_t place = name == "min" ? 1 : 2;
      args.resize(std::max(args.size(), place + 1));
      if (!args[place]) args[place] = builder_.parameter(parameter_of(arg), dtype);
    }
  }

  TileParameter parameter_of(const ProgramArg& arg) const {
    const TensorDesc& desc = request_.in(arg.index);
    return {arg.index, desc.dtype, static_cast<int64_t>(arg.element) * desc.strides[0]};
  }

  const KernelRequest& request_;
  ElementwiseProgram program_;
  ElementwiseProgram::Types types_;
  TileKernelBuilder builder_;
  std::vector<std::optional<Value>> inputs_;
  std::vector<Value> results_;
  std::vector<bool> uses_, stored_;  // of each instruction: read by others; an output
};

KernelPtr make_fused(const KernelRequest& request, std::string& why) {
  return FusedBuilder(request).build(why);
}

const KernelRegistrar kFused("cpu", "fused_elementwise", "simd", 10, make_fused);

}  // namespace

}  // namespace anymps::cpu
