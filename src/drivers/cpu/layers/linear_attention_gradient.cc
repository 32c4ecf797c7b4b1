// SPDX-License-Identifier: Apache-2.0
// The gradients of linear attention on the CPU: heads in parallel. A head keeps its state at each
// place, before the place's key and value are added, and walks back over them.
#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/vectors.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

namespace {

template <typename T>
class LinearAttentionGradient final : public Kernel {
 public:
  explicit LinearAttentionGradient(const KernelRequest& request)
      : batches_(request.in(0).shape[0]),
        length_(request.in(0).shape[1]),
        queries_(request.attrs.i("query_heads")),
        heads_(request.attrs.i("heads")),
        depth_(request.in(1).shape[2] / heads_),
        width_(request.in(2).shape[2] / heads_),
        decays_(request.has(4) ? request.in(4).shape[2] : 0),
        betas_(request.has(5) ? request.in(5).shape[2] : 0),
        decay_count_(request.out(4).count()),
        beta_count_(request.out(5).count()) {
    const double asked = request.attrs.f("scale");
    scale_ = static_cast<T>(asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth_)));
    for (size_t i = 0; i < 8; ++i) has_[i] = request.has(i);
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(batches_ * heads_ * record()) * sizeof(T);
  }
  void run(const KernelArgs& args) const override {
    std::fill_n(output(args, 4), decay_count_, T(0));
    std::fill_n(output(args, 5), beta_count_, T(0));
    const double ns = 3 * static_cast<double>(length_ * depth_ * width_);
    const int64_t together = betas_ == 1 ? heads_ : 1;  // heads that add to one gradient of beta
    parallel_for(0, batches_ * heads_ / together, ns * static_cast<double>(together),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin * together; i < end * together; ++i) run_head(args, i);
                 });
  }

 private:
  int64_t record() const { return length_ * (depth_ + 2) * width_ + width_; }
  const T* input(const KernelArgs& args, size_t i) const {
    return has_[i] ? static_cast<const T*>(args.inputs[i]) : nullptr;
  }
  T* output(const KernelArgs& args, size_t i) const { return static_cast<T*>(args.outputs[i]); }
  int64_t decay_at(int64_t place, int64_t h, int64_t d) const {
    return place * decays_ + (decays_ == heads_ ? h : h * depth_ + d);
  }
  int64_t beta_at(int64_t place, int64_t h) const {
    return place * betas_ + (betas_ == heads_ ? h : 0);
  }
  T kept_share(const KernelArgs& args, int64_t place, int64_t h, int64_t d) const {
    return decays_ > 0 ? std::exp(input(args, 4)[decay_at(place, h, d)]) : T(1);
  }

  void run_head(const KernelArgs& args, int64_t i) const {
    const int64_t b = i / heads_, h = i % heads_, size = depth_ * width_;
    T* states = static_cast<T*>(args.scratch) + i * record();
    T *known = states + length_ * size, *values = known + length_ * width_;
    T* dvalue = values + length_ * width_;
    const T* past = input(args, 3) ? input(args, 3) + i * size : nullptr;
    for (int64_t t = 0; t < length_; ++t) {
      const int64_t place = b * length_ + t;
      const T *key = input(args, 1) + (place * heads_ + h) * depth_,
              *v = input(args, 2) + (place * heads_ + h) * width_;
      T *state = states + t * size, *value = values + t * width_, *gives = known + t * width_;
      std::fill_n(gives, width_, T(0));
      for (int64_t d = 0; d < depth_; ++d) {
        T* row = state + d * width_;
        if (t > 0) {
          std::copy_n(row - size, width_, row);
          add_scaled(row, key[d - heads_ * depth_], value - width_, width_);
        } else if (past) {
          std::copy_n(past + d * width_, width_, row);
        } else {
          std::fill_n(row, width_, T(0));
        }
        const T share = kept_share(args, place, h, d);
        for (int64_t m = 0; m < width_; ++m) row[m] *= share;
        add_scaled(gives, key[d], row, width_);
      }
      for (int64_t m = 0; m < width_; ++m)
        value[m] = betas_ > 0 ? input(args, 5)[beta_at(place, h)] * (v[m] - gives[m]) : v[m];
    }
    T* ds = output(args, 3) + i * size;
    if (const T* given = input(args, 7))
      std::copy_n(given + i * size, size, ds);
    else
      std::fill_n(ds, size, T(0));
    for (int64_t t = length_; t-- > 0;)
      step_back(args, b * length_ + t, h, states + t * size, known + t * width_,
                values + t * width_, ds, dvalue);
  }

  void step_back(const KernelArgs& args, int64_t place, int64_t h, const T* state, const T* known,
                 const T* value, T* ds, T* dvalue) const {
    const int64_t at = place * heads_ + h, shared = queries_ / heads_;
    const T *key = input(args, 1) + at * depth_, *v = input(args, 2) + at * width_;
    T *dk = output(args, 1) + at * depth_, *dv = output(args, 2) + at * width_;
    for (int64_t n = h * shared; n < (h + 1) * shared; ++n) {
      const T* q = input(args, 0) + (place * queries_ + n) * depth_;
      T* dq = output(args, 0) + (place * queries_ + n) * depth_;
      std::fill_n(dq, depth_, T(0));
      if (!input(args, 6)) continue;
      const T* dy = input(args, 6) + (place * queries_ + n) * width_;
      for (int64_t d = 0; d < depth_; ++d) {
        T* after = dvalue;  // the row with the place's key and value
        std::copy_n(state + d * width_, width_, after);
        add_scaled(after, key[d], value, width_);
        dq[d] = scale_ * dot(after, dy, width_);
        add_scaled(ds + d * width_, scale_ * q[d], dy, width_);
      }
    }
    std::fill_n(dvalue, width_, T(0));
    for (int64_t d = 0; d < depth_; ++d) {
      add_scaled(dvalue, key[d], ds + d * width_, width_);
      dk[d] = dot(ds + d * width_, value, width_);
    }
    const T rate = betas_ > 0 ? input(args, 5)[beta_at(place, h)] : T(1);
    for (int64_t m = 0; m < width_; ++m) dv[m] = rate * dvalue[m];
    if (betas_ > 0) {
      T& dbeta = output(args, 5)[beta_at(place, h)];
      for (int64_t m = 0; m < width_; ++m) dbeta += dvalue[m] * (v[m] - known[m]);
      for (int64_t d = 0; d < depth_; ++d) {
        dk[d] -= dot(dv, state + d * width_, width_);
        add_scaled(ds + d * width_, -key[d], dv, width_);
      }
    }
    if (decays_ == 0) return;
    for (int64_t d = 0; d < depth_; ++d) {
      T* row = ds + d * width_;
      output(args, 4)[decay_at(place, h, d)] += dot(row, state + d * width_, width_);
      const T share = kept_share(args, place, h, d);
      for (int64_t m = 0; m < width_; ++m) row[m] *= share;
    }
  }

  int64_t batches_, length_, queries_, heads_, depth_, width_, decays_, betas_, decay_count_,
      beta_count_;
  bool has_[8];
  T scale_ = 1;
};

KernelPtr make_gradient(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  for (const auto& input : request.inputs)
    if (is_half(dtype) || (input && is_half(input->dtype)))
      return widened(request, make_gradient, why);
  for (const auto& input : request.inputs)
    if (input && input->dtype != dtype) return refuse(why, "the state has another dtype");
  if (!dense(request, why)) return nullptr;
  if (dtype == DType::kF64) return std::make_shared<LinearAttentionGradient<double>>(request);
  return std::make_shared<LinearAttentionGradient<float>>(request);
}

const KernelRegistrar kGradient("cpu", "linear_attention_gradient", "heads", 10, make_gradient);

}  // namespace

}  // namespace anymps::cpu
