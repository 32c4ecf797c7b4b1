// SPDX-License-Identifier: Apache-2.0
// linear_attention on the CPU: heads in parallel, each with its state in the cache. The rows of the
// state are walked with the values innermost, so that the compiler uses vectors.
#include <cmath>

#include "drivers/cpu/common/vectors.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

namespace {

template <typename T>
class LinearAttention final : public Kernel {
 public:
  explicit LinearAttention(const KernelRequest& request)
      : batches_(request.in(0).shape[0]),
        length_(request.in(0).shape[1]),
        queries_(request.attrs.i("query_heads")),
        heads_(request.attrs.i("heads")),
        depth_(request.in(1).shape[2] / heads_),
        width_(request.in(2).shape[2] / heads_),
        past_(request.has(3)),
        keeps_(request.outputs.size() > 1),
        decays_(request.has(4) ? request.in(4).shape[2] : 0),
        betas_(request.has(5) ? request.in(5).shape[2] : 0) {
    const double asked = request.attrs.f("scale");
    scale_ = static_cast<T>(asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth_)));
  }
  // The states, where they are no output, and a corrected value for each head.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(batches_ * heads_ * width_ * (keeps_ ? 1 : 1 + depth_)) * sizeof(T);
  }
  void run(const KernelArgs& args) const override {
    const double ns = 0.5 * static_cast<double>(length_ * depth_ * width_);
    parallel_for(0, batches_ * heads_, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_head(args, i);
    });
  }

 private:
  const T* input(const KernelArgs& args, size_t i) const {
    return static_cast<const T*>(args.inputs[i]);
  }

  void run_head(const KernelArgs& args, int64_t i) const {
    const int64_t b = i / heads_, h = i % heads_, size = depth_ * width_,
                  shared = queries_ / heads_;
    T* value = static_cast<T*>(args.scratch) + i * width_;
    T* state = keeps_ ? static_cast<T*>(args.outputs[1]) + i * size
                      : static_cast<T*>(args.scratch) + batches_ * heads_ * width_ + i * size;
    if (past_)
      std::copy_n(input(args, 3) + i * size, size, state);
    else
      std::fill_n(state, size, T(0));
    for (int64_t t = 0; t < length_; ++t) {
      const int64_t place = b * length_ + t;
      const T* key = input(args, 1) + (place * heads_ + h) * depth_;
      decay(args, place, h, state);
      std::copy_n(input(args, 2) + (place * heads_ + h) * width_, width_, value);
      if (betas_ > 0) {
        for (int64_t d = 0; d < depth_; ++d) add(value, -key[d], state + d * width_);
        const T beta = input(args, 5)[place * betas_ + (betas_ == heads_ ? h : 0)];
        for (int64_t m = 0; m < width_; ++m) value[m] *= beta;
      }
      for (int64_t d = 0; d < depth_; ++d) add(state + d * width_, key[d], value);
      for (int64_t n = h * shared; n < (h + 1) * shared; ++n) {
        const T* query = input(args, 0) + (place * queries_ + n) * depth_;
        T* y = static_cast<T*>(args.outputs[0]) + (place * queries_ + n) * width_;
        std::fill_n(y, width_, T(0));
        for (int64_t d = 0; d < depth_; ++d) add(y, scale_ * query[d], state + d * width_);
      }
    }
  }
  void decay(const KernelArgs& args, int64_t place, int64_t h, T* state) const {
    for (int64_t d = 0; d < depth_ && decays_ > 0; ++d) {
      const T factor =
          std::exp(input(args, 4)[place * decays_ + (decays_ == heads_ ? h : h * depth_ + d)]);
      for (int64_t m = 0; m < width_; ++m) state[d * width_ + m] *= factor;
    }
  }
  void add(T* to, T factor, const T* from) const { add_scaled(to, factor, from, width_); }

  int64_t batches_, length_, queries_, heads_, depth_, width_;
  bool past_, keeps_;
  int64_t decays_, betas_;
  T scale_;
};

KernelPtr make_linear_attention(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  for (const auto& input : request.inputs)
    if (input && is_half(input->dtype)) return widened(request, make_linear_attention, why);
  for (const auto& input : request.inputs)
    if (input && (input->dtype != dtype || !input->contiguous()))
      return refuse(why, "inputs of several dtypes, or not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (output.dtype != dtype || !output.contiguous())
      return refuse(why, "outputs of another dtype, or not contiguous");
  if (dtype == DType::kF64) return std::make_shared<LinearAttention<double>>(request);
  return std::make_shared<LinearAttention<float>>(request);
}

const KernelRegistrar kLinearAttention("cpu", "linear_attention", "heads", 10,
                                       make_linear_attention);

}  // namespace

}  // namespace anymps::cpu
