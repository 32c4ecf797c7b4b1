// SPDX-License-Identifier: Apache-2.0
// Fused elementwise programs: the instructions of ops/elementwise/elementwise_program.h as one tile
// program.
#include "drivers/cpu/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_program.h"

namespace anymps::cpu {

namespace {

using Arg = ElementwiseProgram::Arg;

double rounded(DType dtype, double value) {
  if (dtype == DType::kF16) return static_cast<double>(Half(static_cast<float>(value)));
  if (dtype == DType::kBF16) return static_cast<double>(BFloat(static_cast<float>(value)));
  return value;
}

KernelPtr make_fused(const KernelRequest& request, std::string& why) {
  const auto program = ElementwiseProgram::parse(request.attrs.s("program"));
  std::vector<DType> dtypes;
  for (const auto& input : request.inputs) dtypes.push_back(input->dtype);
  const ElementwiseProgram::Types types = program.infer(dtypes, request.out().dtype);

  TileKernelBuilder builder(request.out().shape);
  std::vector<std::optional<int>> inputs(request.inputs.size());
  std::vector<int> results;
  for (size_t i = 0; i < program.instructions().size(); ++i) {
    const ElementwiseProgram::Instruction& instruction = program.instructions()[i];
    std::vector<std::optional<int>> args;
    for (size_t k = 0; k < instruction.args.size(); ++k) {
      const Arg& arg = instruction.args[k];
      const DType dtype = types.args[i][k];
      switch (arg.kind) {
        case Arg::Kind::kAbsent:
          args.push_back(std::nullopt);
          break;
        case Arg::Kind::kTemp:
          args.push_back(results[arg.index]);
          break;
        case Arg::Kind::kImmediate:
          if (dtype == DType::kC64) return refuse(why, "a c64 immediate");
          args.push_back(
              builder.constant(is_half(dtype) ? DType::kF32 : dtype, rounded(dtype, arg.value)));
          break;
        case Arg::Kind::kInput:
          if (!inputs[arg.index])
            inputs[arg.index] = builder.input(arg.index, request.in(arg.index));
          args.push_back(inputs[arg.index]);
          break;
      }
    }
    const DType dtype = types.results[i];
    std::optional<int> result = emit(builder, *instruction.op, instruction.attrs, args, dtype, why);
    if (!result) return nullptr;
    const bool last = i + 1 == program.instructions().size();
    if (is_half(dtype) && !last && !instruction.op->is(kNoRounding))
      result = builder.call(*find_tile_op("round", dtype), {*result});
    results.push_back(*result);
    if (builder.size() > TileKernelBuilder::kMaxValues)
      return refuse(why, "the program is too long");
  }
  builder.output(0, request.out(), results.back());
  return builder.build();
}

const KernelRegistrar kFused("cpu", "fused_elementwise", "simd", 10, make_fused);

}  // namespace

}  // namespace anymps::cpu
