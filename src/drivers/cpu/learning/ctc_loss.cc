// SPDX-License-Identifier: Apache-2.0
// ctc_loss and its gradient on the CPU: sequences run in parallel.
#include "semantics/ctc.h"

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// What both ops read; inputs from `first` on are log_probs, targets and the lengths.
class Sequences {
 public:
  Sequences(const KernelRequest& request, size_t first)
      : op_(request.op->name),
        first_(first),
        frames_(request.in(first).shape[0]),
        count_(request.in(first).shape[1]),
        classes_(request.in(first).shape[2]),
        padded_(request.in(first + 1).rank() == 2),
        room_(request.in(first + 1).shape[padded_ ? 1 : 0]),
        blank_(request.attrs.i("blank")) {
    for (size_t i = 0; i < 3; ++i) wide_[i] = request.in(first + 1 + i).dtype == DType::kI64;
  }
  int64_t frames() const { return frames_; }
  int64_t count() const { return count_; }
  int64_t classes() const { return classes_; }

  // Calls fn(sequence, its CtcSequence, frames that count), in parallel.
  template <typename T, typename Fn>
  void run(const KernelArgs& args, Fn&& fn) const {
    std::vector<int64_t> starts(count_, 0);
    for (int64_t n = 1; !padded_ && n < count_; ++n)
      starts[n] = starts[n - 1] + number(args, 2, n - 1);
    const double ns = 100.0 * static_cast<double>(frames_ * room_ + 1);
    parallel_for(0, count_, ns, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t frames = number(args, 1, n), labels = number(args, 2, n);
        require(frames >= 0 && frames <= frames_, "[{}] sequence {} has {} frames, there are {}",
                op_, n, frames, frames_);
        require(labels >= 0 && starts[n] >= 0 && labels <= room_ - starts[n],
                "[{}] sequence {} has {} labels, there are {}", op_, n, labels, room_ - starts[n]);
        std::vector<int64_t> targets;
        for (int64_t i = 0; i < labels; ++i) {
          targets.push_back(number(args, 0, padded_ ? n * room_ + i : starts[n] + i));
          require(targets.back() >= 0 && targets.back() < classes_,
                  "[{}] label {} of sequence {} is not one of {} classes", op_, targets.back(), n,
                  classes_);
        }
        const T* probs = static_cast<const T*>(args.inputs[first_]) + n * classes_;
        const int64_t step = count_ * classes_;
        fn(n,
           CtcSequence(
               frames, std::move(targets), blank_,
               [probs, step](int64_t t, int64_t c) -> double { return probs[t * step + c]; }),
           frames);
      }
    });
  }

 private:
  int64_t number(const KernelArgs& args, size_t input, int64_t i) const {
    const void* from = args.inputs[first_ + 1 + input];
    return wide_[input] ? static_cast<const int64_t*>(from)[i]
                        : static_cast<const int32_t*>(from)[i];
  }

  std::string op_;
  size_t first_;
  int64_t frames_, count_, classes_;
  bool padded_;
  int64_t room_, blank_;
  bool wide_[3];
};

template <typename T>
KernelPtr make_loss(const KernelRequest& request) {
  return make_kernel([sequences = Sequences(request, 0),
                      zero = request.attrs.b("zero_infinity")](const KernelArgs& args) {
    sequences.run<T>(args, [&](int64_t n, const auto& sequence, int64_t) {
      const bool none = zero && std::isinf(sequence.loss());
      static_cast<T*>(args.outputs[0])[n] = static_cast<T>(none ? 0 : sequence.loss());
    });
  });
}

template <typename T>
KernelPtr make_loss_gradient(const KernelRequest& request) {
  return make_kernel([sequences = Sequences(request, 1), bytes = request.out().bytes(),
                      zero = request.attrs.b("zero_infinity"),
                      softmax = request.attrs.b("through_softmax")](const KernelArgs& args) {
    clear(args.outputs[0], bytes);
    const int64_t classes = sequences.classes(), step = sequences.count() * classes;
    sequences.run<T>(args, [&](int64_t n, const auto& sequence, int64_t frames) {
      if (zero && std::isinf(sequence.loss())) return;
      std::vector<double> slopes(frames * classes, 0.0);
      sequence.differentiate(
          [&](int64_t t, int64_t c) -> double& { return slopes[t * classes + c]; });
      const double scale = static_cast<const T*>(args.inputs[0])[n];
      const T* probs = static_cast<const T*>(args.inputs[1]) + n * classes;
      T* dx = static_cast<T*>(args.outputs[0]) + n * classes;
      for (int64_t t = 0; t < frames; ++t)
        for (int64_t c = 0; c < classes; ++c) {
          const double own = softmax ? std::exp(double{probs[t * step + c]}) : 0;
          dx[t * step + c] = static_cast<T>((slopes[t * classes + c] + own) * scale);
        }
    });
  });
}

template <KernelPtr (*make_f32)(const KernelRequest&), KernelPtr (*make_f64)(const KernelRequest&)>
KernelPtr make_dense(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_dense<make_f32, make_f64>, why);
  if (!dense(request, why)) return nullptr;
  return request.in(0).dtype == DType::kF64 ? make_f64(request) : make_f32(request);
}

const KernelRegistrar kLoss("cpu", "ctc_loss", "sequences", 10,
                            make_dense<make_loss<float>, make_loss<double>>);
const KernelRegistrar kLossGradient(
    "cpu", "ctc_loss_gradient", "sequences", 10,
    make_dense<make_loss_gradient<float>, make_loss_gradient<double>>);

}  // namespace

}  // namespace anymps::cpu
