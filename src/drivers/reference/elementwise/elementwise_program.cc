// SPDX-License-Identifier: Apache-2.0
// Reference kernel of fused programs: runs the reference kernel of each instruction in turn, with
// whole tensors as temporaries. So a fused graph gives, bit for bit, what the unfused one gives.
#include "ops/elementwise/elementwise_program.h"

#include <cstring>

#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

namespace {

TensorDesc strided(DType dtype, Shape shape, Strides strides) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.shape = std::move(shape);
  desc.strides = std::move(strides);
  return desc;
}

std::vector<std::byte> scalar_bytes(DType dtype, double value) {
  std::vector<std::byte> bytes(size_of(dtype));
  dispatch<kAny>(dtype, [&]<typename T>() {
    const T element = scalar::convert<T>(value);
    std::memcpy(bytes.data(), &element, sizeof(T));
  });
  return bytes;
}

}  // namespace

REFERENCE(fused_elementwise) {
  using Arg = ElementwiseProgram::Arg;
  const View& out = args.out[0];
  const auto program = ElementwiseProgram::parse(args.attrs.s("program"));
  std::vector<DType> dtypes;
  for (const View& view : args.in) dtypes.push_back(view.dtype);
  const ElementwiseProgram::Types types = program.infer(dtypes, out.dtype);

  const size_t count = program.instructions().size();
  std::vector<size_t> last_use(count, 0);
  for (size_t i = 0; i < count; ++i)
    for (const Arg& arg : program.instructions()[i].args)
      if (arg.kind == Arg::Kind::kTemp) last_use[arg.index] = i;

  std::vector<std::vector<std::byte>> temps(count);
  for (size_t i = 0; i < count; ++i) {
    const ElementwiseProgram::Instruction& instruction = program.instructions()[i];
    KernelRequest request;
    request.op = instruction.op;
    request.attrs = instruction.attrs;
    std::vector<void*> in;
    std::vector<std::vector<std::byte>> immediates;
    for (size_t k = 0; k < instruction.args.size(); ++k) {
      const Arg& arg = instruction.args[k];
      const DType dtype = types.args[i][k];
      switch (arg.kind) {
        case Arg::Kind::kAbsent:
          request.inputs.emplace_back();
          in.push_back(nullptr);
          break;
        case Arg::Kind::kInput: {
          const View& view = args.in[arg.index];
          request.inputs.emplace_back(strided(dtype, view.shape(), view.strides()));
          in.push_back(view.data);
          break;
        }
        case Arg::Kind::kTemp:
          request.inputs.emplace_back(TensorDesc(dtype, out.shape()));
          in.push_back(temps[arg.index].data());
          break;
        case Arg::Kind::kImmediate:
          request.inputs.emplace_back(TensorDesc(dtype, Shape{}));
          immediates.push_back(scalar_bytes(dtype, arg.value));
          in.push_back(immediates.back().data());
          break;
      }
    }
    // Every operand is read with the output's shape: kernels that do not broadcast need no more.
    for (auto& input : request.inputs)
      if (input)
        *input = strided(input->dtype, out.shape(), broadcast_strides(*input, out.shape()));
    const bool last = i + 1 == count;
    request.outputs = {last ? strided(out.dtype, out.shape(), out.strides())
                            : TensorDesc(types.results[i], out.shape())};
    if (!last) temps[i].resize(request.out().bytes());
    void* result = last ? out.data : reinterpret_cast<char*>(temps[i].data());
    const KernelPtr kernel = make_reference_kernel(request);
    if (!kernel)
      fail(Code::kUnsupported, "[fused_elementwise] op '{}' has no reference", request.op->name);
    kernel->run({in.data(), &result, nullptr, nullptr});
    for (size_t t = 0; t < i; ++t)
      if (last_use[t] == i) temps[t] = {};
  }
}

}  // namespace anymps
