// SPDX-License-Identifier: Apache-2.0
// Losses against labels that are numbers of classes, and their gradients: line by line where the
// classes are innermost, many lines side by side where they are not. Losses are summed in the order
// of the labels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/learning/softmax_of.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// Dense x [outer, classes, inner], its labels and their weights, from the request.
class ClassLabels {
 public:
  ClassLabels(const KernelRequest& request, size_t x)
      : op_(request.op->name.c_str()),
        x_(x),
        ignored_(request.attrs.i("ignore_index")),
        wide_(request.in(x + 1).dtype == DType::kI64) {
    const Shape& shape = request.in(x).shape;
    const size_t axis = shape.size() == 1 ? 0 : 1;
    classes = shape[axis];
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= shape[i];
    weighted = request.has(x + 2);
  }
  int64_t count() const { return outer * inner; }
  // The class of label i; -1: it does not count.
  int64_t of(const KernelArgs& args, int64_t i) const {
    const void* data = args.inputs[x_ + 1];
    const int64_t label = wide_ ? static_cast<const int64_t*>(data)[i]
                                : int64_t{static_cast<const int32_t*>(data)[i]};
    if (label == ignored_) return -1;
    if (label < 0 || label >= classes) [[unlikely]]
      fail(Code::kInvalidArgument, "[{}] label {} is out of range for {} classes", op_, label,
           classes);
    return label;
  }
  template <typename T>
  double weight(const KernelArgs& args, int64_t c) const {
    return weighted ? static_cast<double>(static_cast<const T*>(args.inputs[x_ + 2])[c]) : 1;
  }
  // Where class 0 of label i is in x.
  int64_t place(int64_t i) const { return i / inner * classes * inner + i % inner; }

  int64_t outer = 1, classes = 0, inner = 1;
  bool weighted = false;

 private:
  const char* op_;
  size_t x_;
  int64_t ignored_;
  bool wide_;
};

// The weights of a smoothed label: `rest` times the class's weight for all, `own` more for its own.
struct Smoothing {
  Smoothing(const KernelRequest& request, int64_t classes) {
    if (request.op->attr_index("label_smoothing") < 0) return;
    const double smoothing = request.attrs.f("label_smoothing");
    own = 1 - smoothing;
    rest = smoothing / static_cast<double>(classes);
  }
  double own = 1, rest = 0;
};

// Lines side by side, where the classes are not innermost.
constexpr int64_t kLines = 256;

// Their highest scores, and the sums of e^(x - highest).
template <typename T>
struct SoftmaxLines {
  SoftmaxLines(const T* x, int64_t step, int64_t classes, int64_t n) {
    const GradientOps<T>& ops = gradient_ops<T>();
    std::fill_n(highest, n, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, n, T(0));
    for (int64_t c = 0; c < classes; ++c)
      ops.max_each(x + c * step, highest, static_cast<size_t>(n));
    for (int64_t c = 0; c < classes; ++c) ops.add_exp_each(x + c * step, highest, sum, n);
  }
  double log_sum(int64_t k) const {
    return static_cast<double>(highest[k]) + std::log(static_cast<double>(sum[k]));
  }
  alignas(64) T highest[kLines], sum[kLines];
};

template <typename T>
class ClassLoss final : public Kernel {
 public:
  ClassLoss(const KernelRequest& request, bool scores)
      : labels_(request, 0), smoothing_(request, labels_.classes), scores_(scores) {
    none_ = request.attrs.s("reduction") == "none";
    mean_ = request.attrs.s("reduction") == "mean";
    outputs_ = request.outputs.size();
  }
  size_t scratch_bytes() const override {
    return !scores_ && !none_ ? 0 : static_cast<size_t>(labels_.count()) * sizeof(double);
  }
  void run(const KernelArgs& args) const override {
    const int64_t count = labels_.count();
    if (!scores_ && !none_) return pick_and_sum(args);
    auto* const losses = static_cast<double*>(args.scratch);
    const double ns = scores_ ? 20 + 1.0 * static_cast<double>(labels_.classes) : 3;
    const int64_t step = labels_.inner == 1 ? 1 : kLines;
    // Blocks of lines do not reach from one image to the next.
    const int64_t blocks = (labels_.inner + step - 1) / step;
    parallel_for(0, labels_.outer * blocks, ns * static_cast<double>(step),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b) {
                     const int64_t first = b / blocks * labels_.inner + b % blocks * step;
                     run_lines(args, first,
                               std::min(step, (b / blocks + 1) * labels_.inner - first), losses);
                   }
                 });
    double sum = 0, total = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = labels_.of(args, i);
      if (label >= 0) total += labels_.template weight<T>(args, label);
      sum += losses[i];
    }
    T* const out = static_cast<T*>(args.outputs[0]);
    if (none_)
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(losses[i]);
    else
      out[0] = static_cast<T>(mean_ ? sum / total : sum);
    if (outputs_ > 1) *static_cast<T*>(args.outputs[1]) = static_cast<T>(total);
  }

 private:
  // One number of each line: not worth more than a thread.
  void pick_and_sum(const KernelArgs& args) const {
    const T* const x = static_cast<const T*>(args.inputs[0]);
    double sum = 0, total = 0;
    for (int64_t image = 0, i = 0; image < labels_.outer; ++image)
      for (int64_t k = 0; k < labels_.inner; ++k, ++i) {
        const int64_t label = labels_.of(args, i);
        if (label < 0) continue;
        const double weight = labels_.template weight<T>(args, label);
        total += weight;
        sum -=
            weight * static_cast<double>(x[(image * labels_.classes + label) * labels_.inner + k]);
      }
    *static_cast<T*>(args.outputs[0]) = static_cast<T>(mean_ ? sum / total : sum);
    if (outputs_ > 1) *static_cast<T*>(args.outputs[1]) = static_cast<T>(total);
  }

  void run_lines(const KernelArgs& args, int64_t first, int64_t n, double* losses) const {
    const T* const x = static_cast<const T*>(args.inputs[0]) + labels_.place(first);
    const int64_t step = labels_.inner;
    if (!scores_) {
      for (int64_t k = 0; k < n; ++k) {
        const int64_t label = labels_.of(args, first + k);
        losses[first + k] = label < 0 ? 0
                                      : -labels_.template weight<T>(args, label) *
                                            static_cast<double>(x[label * step + k]);
      }
    } else if (step == 1) {
      const int64_t label = labels_.of(args, first);
      if (label >= 0)
        losses[first] =
            loss(args, x, 1, label, softmax_of<T>(x, 1, labels_.classes, nullptr, 0).log_sum());
      else
        losses[first] = 0;
    } else {
      const SoftmaxLines<T> lines(x, step, labels_.classes, n);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t label = labels_.of(args, first + k);
        losses[first + k] = label < 0 ? 0 : loss(args, x + k, step, label, lines.log_sum(k));
      }
    }
  }

  double loss(const KernelArgs& args, const T* x, int64_t step, int64_t label,
              double log_sum) const {
    double result = 0;
    if (smoothing_.own != 0)
      result = labels_.template weight<T>(args, label) * smoothing_.own *
               (log_sum - static_cast<double>(x[label * step]));
    if (smoothing_.rest != 0)
      for (int64_t c = 0; c < labels_.classes; ++c)
        result += labels_.template weight<T>(args, c) * smoothing_.rest *
                  (log_sum - static_cast<double>(x[c * step]));
    return result;
  }

  ClassLabels labels_;
  Smoothing smoothing_;
  bool scores_, none_ = false, mean_ = false;
  size_t outputs_ = 1;
};

template <typename T>
class ClassLossGradient {
 public:
  ClassLossGradient(const KernelRequest& request, bool scores)
      : labels_(request, 1), smoothing_(request, labels_.classes), scores_(scores) {
    none_ = request.attrs.s("reduction") == "none";
    if (request.attrs.s("reduction") == "mean") total_ = request.in(4).dtype;
  }

  void operator()(const KernelArgs& args) const {
    const int64_t image = labels_.classes * labels_.inner;
    if (image == 0) return;
    T* const dx = static_cast<T*>(args.outputs[0]);
    double total = 1;
    if (total_) read_numbers(*total_, args.inputs[4], 1, &total);
    const int64_t step = labels_.inner == 1 ? 1 : kLines;
    const int64_t blocks = (labels_.inner + step - 1) / step;
    if (!scores_)
      parallel_for(0, labels_.outer, 0.1 * static_cast<double>(image),
                   [&](int64_t begin, int64_t end) {
                     std::fill(dx + begin * image, dx + end * image, T(0));
                   });
    parallel_for(
        0, labels_.outer * blocks,
        static_cast<double>(step) * (scores_ ? 20 + 1.5 * static_cast<double>(labels_.classes) : 5),
        [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b) {
            const int64_t first = b / blocks * labels_.inner + b % blocks * step;
            run_lines(args, first, std::min(step, (b / blocks + 1) * labels_.inner - first), total);
          }
        });
  }

 private:
  void run_lines(const KernelArgs& args, int64_t first, int64_t n, double total) const {
    const int64_t at = labels_.place(first), inner = labels_.inner;
    const T* const x = static_cast<const T*>(args.inputs[1]) + at;
    T* const dx = static_cast<T*>(args.outputs[0]) + at;
    const auto scale = [&](int64_t i) {
      return static_cast<double>(static_cast<const T*>(args.inputs[0])[none_ ? i : 0]) / total;
    };
    if (!scores_) {
      for (int64_t k = 0; k < n; ++k)
        if (const int64_t label = labels_.of(args, first + k); label >= 0)
          dx[label * inner + k] =
              static_cast<T>(-labels_.template weight<T>(args, label) * scale(first + k));
      return;
    }
    if (inner == 1)
      line(args, x, dx, labels_.of(args, first), scale(first));
    else
      lines(args, first, n, x, dx, scale);
  }

  // The sum of a smoothed label's weights.
  double weight_of(const KernelArgs& args, int64_t label) const {
    double sum = labels_.template weight<T>(args, label) * smoothing_.own;
    if (smoothing_.rest != 0)
      for (int64_t c = 0; c < labels_.classes; ++c)
        sum += labels_.template weight<T>(args, c) * smoothing_.rest;
    return sum;
  }

  // What is left when dx holds the softmax, times the scale and the sum of the label's weights.
  void take_label(const KernelArgs& args, T* dx, int64_t step, int64_t label, double scale) const {
    if (smoothing_.rest != 0)
      for (int64_t c = 0; c < labels_.classes; ++c)
        dx[c * step] =
            static_cast<T>(static_cast<double>(dx[c * step]) -
                           labels_.template weight<T>(args, c) * smoothing_.rest * scale);
    T& own = dx[label * step];
    own = static_cast<T>(static_cast<double>(own) -
                         labels_.template weight<T>(args, label) * smoothing_.own * scale);
  }

  void line(const KernelArgs& args, const T* x, T* dx, int64_t label, double scale) const {
    const int64_t classes = labels_.classes;
    if (label < 0) {
      std::fill_n(dx, classes, T(0));
      return;
    }
    const SoftmaxLine softmax = softmax_of<T>(x, 1, classes, dx, 1);
    gradient_ops<T>().affine(dx, T(0), static_cast<T>(scale * weight_of(args, label) / softmax.sum),
                             T(0), dx, classes);
    take_label(args, dx, 1, label, scale);
  }

  template <typename Scale>
  void lines(const KernelArgs& args, int64_t first, int64_t n, const T* x, T* dx,
             const Scale& scale) const {
    const int64_t classes = labels_.classes, step = labels_.inner;
    const SoftmaxLines<T> softmax(x, step, classes, n);
    alignas(64) T factors[kLines];
    for (int64_t k = 0; k < n; ++k) {
      const int64_t label = labels_.of(args, first + k);
      factors[k] = label < 0 ? T(0)
                             : static_cast<T>(scale(first + k) * weight_of(args, label) /
                                              static_cast<double>(softmax.sum[k]));
    }
    for (int64_t c = 0; c < classes; ++c)
      gradient_ops<T>().exp_each(x + c * step, softmax.highest, factors, dx + c * step, n);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t label = labels_.of(args, first + k);
      if (label >= 0)
        take_label(args, dx + k, step, label, scale(first + k));
      else
        for (int64_t c = 0; c < classes; ++c) dx[c * step + k] = T(0);
    }
  }

  ClassLabels labels_;
  Smoothing smoothing_;
  bool scores_, none_ = false;
  std::optional<DType> total_;
};

template <bool scores>
KernelPtr make_class_loss(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  if (is_half(request.in(0).dtype)) return widened(request, make_class_loss<scores>, why);
  return with_computed(request.in(0).dtype, [&]<typename A>() -> KernelPtr {
    return std::make_shared<ClassLoss<A>>(request, scores);
  });
}

template <bool scores>
KernelPtr make_class_loss_gradient(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  if (is_half(request.in(0).dtype)) return widened(request, make_class_loss_gradient<scores>, why);
  return with_computed(request.in(0).dtype, [&]<typename A>() -> KernelPtr {
    return make_kernel(ClassLossGradient<A>(request, scores));
  });
}

const KernelFamily kCrossEntropy("labels", 10,
                                 {{"nll_loss", make_class_loss<false>},
                                  {"nll_loss_gradient", make_class_loss_gradient<false>},
                                  {"cross_entropy", make_class_loss<true>},
                                  {"cross_entropy_gradient", make_class_loss_gradient<true>}});

}  // namespace

}  // namespace anymps::cpu
