// SPDX-License-Identifier: Apache-2.0
// linear_attention and its gradients on the CPU: heads in parallel, each with its state in the
// cache.
#include <algorithm>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/linear_attention.h"

namespace anymps::cpu {

namespace {

LinearAttention attention_of(const KernelRequest& request) {
  std::vector<std::optional<Shape>> shapes(6);
  for (size_t i = 0; i < 6; ++i)
    if (request.has(i)) shapes[i] = request.in(i).shape;
  return linear_attention_of(request.attrs, shapes);
}

template <typename T>
LinearAttentionInputs<T> inputs_of(const KernelArgs& args, const std::vector<bool>& has) {
  const auto at = [&](size_t i) {
    return i < has.size() && has[i] ? static_cast<const T*>(args.inputs[i]) : nullptr;
  };
  return {at(0), at(1), at(2), at(3), at(4), at(5)};
}

std::vector<bool> present(const KernelRequest& request) {
  std::vector<bool> has;
  for (size_t i = 0; i < request.inputs.size(); ++i) has.push_back(request.has(i));
  has.resize(8);
  return has;
}

template <typename T>
class LinearAttentionKernel final : public Kernel {
 public:
  explicit LinearAttentionKernel(const KernelRequest& request)
      : attention_(attention_of(request)),
        has_(present(request)),
        keeps_(request.outputs.size() > 1) {}
  // The states, where they are not an output, and what a head needs.
  size_t scratch_bytes() const override {
    const int64_t each = attention_.forward_scratch() + (keeps_ ? 0 : attention_.size());
    return static_cast<size_t>(heads() * each) * sizeof(T);
  }
  void run(const KernelArgs& args) const override {
    const LinearAttentionInputs<T> in = inputs_of<T>(args, has_);
    auto *scratch = static_cast<T*>(args.scratch), *y = static_cast<T*>(args.outputs[0]);
    T* states = keeps_ ? static_cast<T*>(args.outputs[1])
                       : scratch + heads() * attention_.forward_scratch();
    const double ns = 0.5 * static_cast<double>(attention_.length * attention_.size());
    parallel_for(0, heads(), ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        attention_.forward(in, i, states + i * attention_.size(), y,
                           scratch + i * attention_.forward_scratch());
    });
  }

 private:
  int64_t heads() const { return attention_.batches * attention_.heads; }

  LinearAttention attention_;
  std::vector<bool> has_;
  bool keeps_;
};

template <typename T>
class LinearAttentionGradientKernel final : public Kernel {
 public:
  explicit LinearAttentionGradientKernel(const KernelRequest& request)
      : attention_(attention_of(request)),
        has_(present(request)),
        decay_count_(request.out(4).count()),
        beta_count_(request.out(5).count()) {}
  size_t scratch_bytes() const override {
    return static_cast<size_t>(attention_.batches * attention_.heads *
                               attention_.gradient_scratch()) *
           sizeof(T);
  }
  void run(const KernelArgs& args) const override {
    const auto to = [&](size_t i) { return static_cast<T*>(args.outputs[i]); };
    const auto given = [&](size_t i) {
      return has_[i] ? static_cast<const T*>(args.inputs[i]) : nullptr;
    };
    const LinearAttentionInputs<T> in = inputs_of<T>(args, has_);
    const LinearAttentionGradients<T> out{given(6), given(7), to(0), to(1),
                                          to(2),    to(3),    to(4), to(5)};
    std::fill_n(out.ddecay, decay_count_, T(0));
    std::fill_n(out.dbeta, beta_count_, T(0));
    const double ns = 3 * static_cast<double>(attention_.length * attention_.size());
    // Heads that add to one gradient of beta run one after the other.
    const int64_t together = attention_.betas == 1 ? attention_.heads : 1;
    parallel_for(0, attention_.batches * attention_.heads / together,
                 ns * static_cast<double>(together), [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin * together; i < end * together; ++i)
                     attention_.gradient(
                         in, i, out,
                         static_cast<T*>(args.scratch) + i * attention_.gradient_scratch());
                 });
  }

 private:
  LinearAttention attention_;
  std::vector<bool> has_;
  int64_t decay_count_, beta_count_;
};

CPU_KERNEL(linear_attention, "heads") {
  const DType dtype = request.in(0).dtype;
  for (const auto& input : request.inputs)
    if (input && is_half(input->dtype)) return widened(request, make_linear_attention, why);
  for (const auto& input : request.inputs)
    if (input && (input->dtype != dtype || !input->contiguous()))
      return refuse(why, "inputs of several dtypes, or not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (output.dtype != dtype || !output.contiguous())
      return refuse(why, "outputs of another dtype, or not contiguous");
  if (dtype == DType::kF64) return std::make_shared<LinearAttentionKernel<double>>(request);
  return std::make_shared<LinearAttentionKernel<float>>(request);
}

KernelPtr make_gradient(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  for (const auto& input : request.inputs)
    if (is_half(dtype) || (input && is_half(input->dtype)))
      return widened(request, make_gradient, why);
  for (const auto& input : request.inputs)
    if (input && input->dtype != dtype) return refuse(why, "the state has another dtype");
  if (!dense(request, why)) return nullptr;
  if (dtype == DType::kF64) return std::make_shared<LinearAttentionGradientKernel<double>>(request);
  return std::make_shared<LinearAttentionGradientKernel<float>>(request);
}

const KernelRegistrar kGradient("cpu", "linear_attention_gradient", "heads", 10, make_gradient);

}  // namespace

}  // namespace anymps::cpu
