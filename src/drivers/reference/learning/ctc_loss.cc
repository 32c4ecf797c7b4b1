// SPDX-License-Identifier: Apache-2.0
// Reference kernels of ctc_loss and its gradient.
#include "semantics/ctc.h"

#include "drivers/reference/dense.h"

namespace anymps {

namespace {

// Calls fn(sequence, its CtcSequence, frames); inputs from `first` on are log_probs, targets and
// the lengths.
template <typename Fn>
void for_each_sequence(const ReferenceArgs& args, size_t first, Fn fn) {
  const View &probs = args.in[first], &targets = args.in[first + 1];
  const int64_t frames = probs.extent(0), classes = probs.extent(2);
  const int64_t room = targets.rank() == 2 ? targets.extent(1) : targets.extent(0);
  int64_t next = 0;  // among targets that come one after the other
  for (int64_t n = 0; n < probs.extent(1); ++n) {
    const int64_t length = load_int(args.in[first + 2], n * args.in[first + 2].stride(0));
    const int64_t count = load_int(args.in[first + 3], n * args.in[first + 3].stride(0));
    require(length >= 0 && length <= frames, "[{}] sequence {} has {} frames, there are {}",
            args.op.name, n, length, frames);
    require(count >= 0 && count <= room - next, "[{}] sequence {} has {} labels, there are {}",
            args.op.name, n, count, room - next);
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at =
          targets.rank() == 2 ? targets.offset(std::array{n, i}) : (next + i) * targets.stride(0);
      labels.push_back(load_int(targets, at));
      require(labels.back() >= 0 && labels.back() < classes,
              "[{}] label {} of sequence {} is not one of {} classes", args.op.name, labels.back(),
              n, classes);
    }
    if (targets.rank() == 1) next += count;
    fn(n,
       CtcSequence(length, std::move(labels), args.attrs.i("blank"),
                   [&probs, n](int64_t t, int64_t c) {
                     return load_double(probs, probs.offset(std::array{t, n, c}));
                   }),
       length);
  }
}

}  // namespace

REFERENCE(ctc_loss) {
  std::vector<double> losses;
  for_each_sequence(args, 0, [&](int64_t, const auto& sequence, int64_t) {
    const bool none = args.attrs.b("zero_infinity") && std::isinf(sequence.loss());
    losses.push_back(none ? 0 : sequence.loss());
  });
  write_dense(args.out[0], losses);
}

REFERENCE(ctc_loss_gradient) {
  const View &probs = args.in[1], &dx = args.out[0];
  const int64_t sequences = dx.extent(1), classes = dx.extent(2);
  std::vector<double> slopes(dx.count(), 0.0);
  for_each_sequence(args, 1, [&](int64_t n, const auto& sequence, int64_t frames) {
    if (args.attrs.b("zero_infinity") && std::isinf(sequence.loss())) return;
    const auto slope = [&](int64_t t, int64_t c) -> double& {
      return slopes[(t * sequences + n) * classes + c];
    };
    sequence.differentiate(slope);
    const double scale = load_double(args.in[0], n * args.in[0].stride(0));
    for (int64_t t = 0; t < frames; ++t)
      for (int64_t c = 0; c < classes; ++c) {
        if (args.attrs.b("through_softmax"))
          slope(t, c) += std::exp(load_double(probs, probs.offset(std::array{t, n, c})));
        slope(t, c) *= scale;
      }
  });
  write_dense(dx, slopes);
}

}  // namespace anymps
