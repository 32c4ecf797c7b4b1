// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/widen.h"

namespace anymps::cpu {

namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A conversion of one input or output, and where its f32 side lies in the scratch memory.
struct Conversion {
  size_t index = 0, offset = 0;
  KernelPtr cast;
};

KernelPtr make_cast(const TensorDesc& from, const TensorDesc& to, std::string& why) {
  KernelRequest request;
  request.op = &get_op("cast");
  request.attrs = Attrs(*request.op, {{"dtype", to.dtype}});
  request.inputs = {from};
  request.outputs = {to};
  request.constants = {nullptr};
  request.contents.resize(1);
  for (const KernelEntry& entry : kernel_list("cpu", "cast"))
    if (KernelPtr kernel = entry.make(request, why)) return kernel;
  why = fmt::format("no conversion of {} to {}: {}", to_string(from), to_string(to), why);
  return nullptr;
}

ConstantPtr wide_constant(const ConstantPtr& half) {
  return Constant::lazy(DType::kF32, half->shape(), [half](std::byte* out) {
    const Constant::Bytes bytes = half->data();
    auto* to = reinterpret_cast<float*>(out);
    const int64_t count = half->desc().count();
    dispatch<bit(DType::kF16) | bit(DType::kBF16)>(half->dtype(), [&]<typename T>() {
      const T* from = reinterpret_cast<const T*>(bytes.get());
      for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    });
  });
}

class WidenedKernel final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    constexpr size_t kMost = 16;
    void *in[kMost], *out[kMost];
    char* scratch = static_cast<char*>(args.scratch);
    std::copy_n(args.inputs, inputs, in);
    std::copy_n(args.outputs, outputs, out);
    for (const Conversion& c : before) {
      in[c.index] = scratch + c.offset;
      c.cast->run({&args.inputs[c.index], &in[c.index], scratch + own_scratch, args.queue});
    }
    for (const Conversion& c : after) out[c.index] = scratch + c.offset;
    inner->run({in, out, scratch + own_scratch, args.queue});
    for (const Conversion& c : after)
      c.cast->run({&out[c.index], &args.outputs[c.index], scratch + own_scratch, args.queue});
  }
  size_t scratch_bytes() const override { return own_scratch + shared_scratch; }
  bool reads(size_t i) const override { return inner->reads(i); }
  std::string detail() const override { return inner->detail() + " in f32"; }

  KernelPtr inner;
  std::vector<Conversion> before, after;
  size_t inputs = 0, outputs = 0;
  size_t own_scratch = 0, shared_scratch = 0;  // the f32 tensors; what kernels use one at a time
};

}  // namespace

KernelPtr widened(const KernelRequest& request, const KernelFactory& make, std::string& why) {
  if (request.inputs.size() > 16 || request.outputs.size() > 16) {
    why = "too many tensors";
    return nullptr;
  }
  KernelRequest wide = request;
  for (auto& input : wide.inputs)
    if (input && is_half(input->dtype)) input = TensorDesc(DType::kF32, input->shape);
  for (TensorDesc& output : wide.outputs)
    if (is_half(output.dtype)) output = TensorDesc(DType::kF32, output.shape);
  for (ConstantPtr& constant : wide.constants)
    if (constant && is_half(constant->dtype())) constant = wide_constant(constant);
  auto kernel = std::make_shared<WidenedKernel>();
  kernel->inner = make(wide, why);
  if (!kernel->inner) return nullptr;
  kernel->inputs = request.inputs.size();
  kernel->outputs = request.outputs.size();
  kernel->shared_scratch = kernel->inner->scratch_bytes();
  const auto convert = [&](std::vector<Conversion>& list, size_t index, const TensorDesc& from,
                           const TensorDesc& to) {
    Conversion c{index, kernel->own_scratch, make_cast(from, to, why)};
    if (!c.cast) return false;
    kernel->own_scratch += aligned((from.dtype == DType::kF32 ? from : to).bytes());
    kernel->shared_scratch = std::max(kernel->shared_scratch, c.cast->scratch_bytes());
    list.push_back(std::move(c));
    return true;
  };
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && is_half(request.in(i).dtype) && kernel->inner->reads(i) &&
        !convert(kernel->before, i, request.in(i), wide.in(i)))
      return nullptr;
  for (size_t i = 0; i < request.outputs.size(); ++i)
    if (is_half(request.outputs[i].dtype) &&
        !convert(kernel->after, i, wide.outputs[i], request.outputs[i]))
      return nullptr;
  return kernel;
}

}  // namespace anymps::cpu
