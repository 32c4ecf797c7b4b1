// SPDX-License-Identifier: Apache-2.0
// softmax_cross_entropy and its gradient on the CPU: line by line, with vectors where a line of f32
// is dense.
#include <cmath>

#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/learning/softmax_of.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

template <typename T>
class CrossEntropy final : public Kernel {
 public:
  explicit CrossEntropy(const KernelRequest& request) : mode_(request.attrs.s("reduction")) {
    const TensorDesc &x = request.in(0), &labels = request.in(1), &loss = request.out();
    const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "softmax_cross_entropy");
    length_ = x.shape[axis];
    x_step_ = x.strides[axis];
    labels_step_ = labels.strides[axis];
    lines_ = line_starts(
        x.shape, axis,
        {x.strides, labels.strides, mode_ == "none" ? loss.strides : Strides(x.shape.size(), 0)});
  }
  size_t scratch_bytes() const override {
    return mode_ == "none" ? 0 : static_cast<size_t>(lines_.count()) * sizeof(double);
  }
  void run(const KernelArgs& args) const override {
    const int64_t lines = lines_.count();
    auto* losses = static_cast<double*>(args.scratch);
    auto* out = static_cast<T*>(args.outputs[0]);
    parallel_for(0, lines, 20 + 3 * static_cast<double>(length_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double loss = line(static_cast<const T*>(args.inputs[0]) + lines_.offset(0, i),
                                 static_cast<const T*>(args.inputs[1]) + lines_.offset(1, i));
        if (mode_ == "none")
          out[lines_.offset(2, i)] = static_cast<T>(loss);
        else
          losses[i] = loss;
      }
    });
    if (mode_ == "none") return;
    double sum = 0;
    for (int64_t i = 0; i < lines; ++i) sum += losses[i];
    out[0] = static_cast<T>(mode_ == "mean" ? sum / static_cast<double>(lines) : sum);
  }

 private:
  double line(const T* x, const T* labels) const {
    if (length_ == 0) return 0;
    const SoftmaxLine softmax = softmax_of<T>(x, x_step_, length_, nullptr, 0);
    const double log_sum = softmax.log_sum();
    double loss = 0;
    for (int64_t i = 0; i < length_; ++i)
      loss -= static_cast<double>(labels[i * labels_step_]) *
              (static_cast<double>(x[i * x_step_]) - log_sum);
    return loss;
  }

  std::string mode_;
  int64_t length_ = 0, x_step_ = 1, labels_step_ = 1;
  Loops lines_;  // operands x, labels, loss
};

template <typename T>
class CrossEntropyGradient {
 public:
  explicit CrossEntropyGradient(const KernelRequest& request) {
    const TensorDesc &dloss = request.in(0), &x = request.in(1), &labels = request.in(2),
                     &dx = request.out();
    const size_t axis =
        normalize_axis(request.attrs.i("axis"), x.rank(), "softmax_cross_entropy_gradient");
    const std::string& mode = request.attrs.s("reduction");
    length_ = x.shape[axis];
    steps_[0] = x.strides[axis];
    steps_[1] = labels.strides[axis];
    steps_[2] = dx.strides[axis];
    lines_ = line_starts(x.shape, axis,
                         {x.strides, labels.strides, dx.strides,
                          mode == "none" ? dloss.strides : Strides(x.shape.size(), 0)});
    if (mode == "mean") divisor_ = static_cast<double>(lines_.count());
  }

  void operator()(const KernelArgs& args) const {
    if (length_ == 0) return;
    parallel_for(0, lines_.count(), 20 + 3 * static_cast<double>(length_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) line(args, i);
                 });
  }

 private:
  void line(const KernelArgs& args, int64_t i) const {
    const T* x = static_cast<const T*>(args.inputs[1]) + lines_.offset(0, i);
    const T* labels = static_cast<const T*>(args.inputs[2]) + lines_.offset(1, i);
    T* dx = static_cast<T*>(args.outputs[0]) + lines_.offset(2, i);
    const auto dloss =
        static_cast<double>(static_cast<const T*>(args.inputs[0])[lines_.offset(3, i)]);
    const SoftmaxLine softmax = softmax_of<T>(x, steps_[0], length_, dx, steps_[2]);
    double sum = 0;
    for (int64_t k = 0; k < length_; ++k) sum += static_cast<double>(labels[k * steps_[1]]);
    const double scale = dloss / divisor_, factor = sum / softmax.sum;
    for (int64_t k = 0; k < length_; ++k) {
      T& element = dx[k * steps_[2]];
      element = static_cast<T>(scale * (static_cast<double>(element) * factor -
                                        static_cast<double>(labels[k * steps_[1]])));
    }
  }

  int64_t length_ = 0, steps_[3] = {1, 1, 1};
  double divisor_ = 1;
  Loops lines_;  // operands x, labels, dx, dloss
};

KernelPtr make_cross_entropy(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_cross_entropy, why);
  if (request.in(0).dtype == DType::kF64) return std::make_shared<CrossEntropy<double>>(request);
  return std::make_shared<CrossEntropy<float>>(request);
}

KernelPtr make_cross_entropy_gradient(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_cross_entropy_gradient, why);
  if (request.in(0).dtype == DType::kF64) return make_kernel(CrossEntropyGradient<double>(request));
  return make_kernel(CrossEntropyGradient<float>(request));
}

const KernelRegistrar kCrossEntropy("cpu", "softmax_cross_entropy", "lines", 10,
                                    make_cross_entropy);
const KernelRegistrar kCrossEntropyGradient("cpu", "softmax_cross_entropy_gradient", "lines", 10,
                                            make_cross_entropy_gradient);

}  // namespace

}  // namespace anymps::cpu
