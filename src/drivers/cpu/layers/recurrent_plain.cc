// SPDX-License-Identifier: Apache-2.0
// Recurrent layers that oneDNN's kernels refuse: weights that change from run to run, as in
// training, sequences of several lengths, peepholes, clipping, other activations, f64. Sequences
// are walked in parallel; what comes from x is computed for all steps first.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/vectors.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/layers/recurrent_layer.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/recurrent.h"

namespace anymps::cpu {

namespace {

using Kind = RecurrentKind;

template <typename T>
class RecurrentPlain final : public RecurrentLayer {
 public:
  RecurrentPlain(const KernelRequest& request, Kind kind)
      : RecurrentLayer(request, kind),
        clip_(static_cast<T>(request.attrs.f("clip"))),
        y_bytes_(request.out().bytes()) {
    if (kind == Kind::kLstm) input_forget_ = request.attrs.b("input_forget");
    const std::vector<std::string> usual = usual_activations(request.attrs, gates_);
    activations_ = cell_activations(request.attrs, directions_, usual);
    functions_ = usual.size();
  }

  // For each sequence: z of all steps, the two states, and the scaled state of a gru.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(directions_ * batch_ * record()) * sizeof(T);
  }

  void run(const KernelArgs& args) const override {
    clear(args.outputs[0], y_bytes_);
    const int64_t rows = gates_ * hidden_, sequences = directions_ * batch_;
    parallel_for(0, sequences * steps_, 0.3 * static_cast<double>(rows * width_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     from_x(args, i / steps_ / batch_, i / steps_ % batch_, i % steps_);
                 });
    parallel_for(0, sequences, 0.5 * static_cast<double>(steps_ * rows * hidden_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) sequence(args, i / batch_, i % batch_);
                 });
  }

 private:
  int64_t record() const { return (steps_ * gates_ + 3) * hidden_; }
  const T* in(const KernelArgs& args, size_t i) const {
    return has(i) ? static_cast<const T*>(args.inputs[i]) : nullptr;
  }
  T* memory(const KernelArgs& args, int64_t d, int64_t n) const {
    return static_cast<T*>(args.scratch) + (d * batch_ + n) * record();
  }
  T clip(T x) const { return clip_ > 0 ? std::clamp(x, -clip_, clip_) : x; }
  T act(int64_t d, size_t which, T x) const {
    const auto at = static_cast<size_t>(d) * functions_ + which;
    return static_cast<T>(activations_[at](static_cast<double>(clip(x))));
  }
  T bias(const KernelArgs& args, int64_t d, int64_t half, int64_t row) const {
    return has(3) ? in(args, 3)[(d * 2 + half) * gates_ * hidden_ + row] : T(0);
  }

  void from_x(const KernelArgs& args, int64_t d, int64_t n, int64_t place) const {
    if (place >= length_of(args, n)) return;
    const int64_t rows = gates_ * hidden_;
    const T* x = in(args, 0) + x_at(n, place);
    T* z = memory(args, d, n) + place * rows;
    for (int64_t i = 0; i < rows; ++i)
      z[i] = dot(in(args, 1) + (d * rows + i) * width_, x, width_) + bias(args, d, 0, i);
  }
  T from_state(const KernelArgs& args, int64_t d, int64_t row, const T* h) const {
    return dot(in(args, 2) + (d * gates_ * hidden_ + row) * hidden_, h, hidden_) +
           bias(args, d, 1, row);
  }

  void sequence(const KernelArgs& args, int64_t d, int64_t n) const {
    const int64_t length = length_of(args, n);
    const int64_t state = state_at(d, n);
    const bool lstm = kind_ == Kind::kLstm;
    T* z = memory(args, d, n);
    T *h = z + steps_ * gates_ * hidden_, *c = h + hidden_, *scaled = c + hidden_;
    const auto start = [&](T* to, const T* from) {
      from ? std::copy_n(from + state, hidden_, to) : std::fill_n(to, hidden_, T(0));
    };
    start(h, in(args, 5));
    start(c, lstm ? in(args, 6) : nullptr);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t place = d == 1 || reverse_ ? length - 1 - t : t;
      T* own = z + place * gates_ * hidden_;
      const int64_t plain = kind_ == Kind::kGru ? 2 : gates_;  // gates that are sums of both parts
      for (int64_t i = 0; i < plain * hidden_; ++i) own[i] += from_state(args, d, i, h);
      if (lstm)
        lstm_step(args, d, own, h, c);
      else if (kind_ == Kind::kGru)
        gru_step(args, d, own, h, scaled);
      else
        for (int64_t u = 0; u < hidden_; ++u) h[u] = act(d, 0, own[u]);
      std::copy_n(h, hidden_, static_cast<T*>(args.outputs[0]) + y_at(d, n, place));
    }
    if (outputs_ > 1) std::copy_n(h, hidden_, static_cast<T*>(args.outputs[1]) + state);
    if (outputs_ > 2) std::copy_n(c, hidden_, static_cast<T*>(args.outputs[2]) + state);
  }

  void lstm_step(const KernelArgs& args, int64_t d, const T* z, T* h, T* c) const {
    enum Gate : int64_t { kInput, kOutput, kForget, kCell };
    const T* peepholes = has(7) ? in(args, 7) + d * 3 * hidden_ : nullptr;
    for (int64_t u = 0; u < hidden_; ++u) {
      const auto gate = [&](Gate which, T state) {
        const int64_t at = which * hidden_ + u;
        return act(d, 0, z[at] + (peepholes ? peepholes[at] * state : T(0)));
      };
      const T input = gate(kInput, c[u]);
      const T forget = input_forget_ ? 1 - input : gate(kForget, c[u]);
      c[u] = forget * c[u] + input * act(d, 1, z[kCell * hidden_ + u]);
      h[u] = gate(kOutput, c[u]) * act(d, 2, c[u]);
    }
  }
  void gru_step(const KernelArgs& args, int64_t d, T* z, T* h, T* scaled) const {
    enum Gate : int64_t { kUpdate, kReset, kNew };
    T *update = z + kUpdate * hidden_, *reset = z + kReset * hidden_, *fresh = z + kNew * hidden_;
    for (int64_t u = 0; u < hidden_; ++u) {
      update[u] = act(d, 0, update[u]);
      reset[u] = act(d, 0, reset[u]);
      scaled[u] = reset[u] * h[u];
    }
    for (int64_t u = 0; u < hidden_; ++u) {
      const T recurrent = from_state(args, d, kNew * hidden_ + u, linear_ ? h : scaled);
      fresh[u] = act(d, 1, fresh[u] + (linear_ ? reset[u] * recurrent : recurrent));
    }
    for (int64_t u = 0; u < hidden_; ++u) h[u] = (1 - update[u]) * fresh[u] + update[u] * h[u];
  }

  T clip_;
  size_t y_bytes_, functions_ = 1;
  bool input_forget_ = false;
  std::vector<CellActivation> activations_;
};

template <Kind kind>
KernelPtr make_plain(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_plain<kind>, why);
  if (!dense(request, why)) return nullptr;
  if (dtype == DType::kF64) return std::make_shared<RecurrentPlain<double>>(request, kind);
  return std::make_shared<RecurrentPlain<float>>(request, kind);
}

const KernelRegistrar kLstm("cpu", "lstm", "sequences", 20, make_plain<Kind::kLstm>);
const KernelRegistrar kGru("cpu", "gru", "sequences", 20, make_plain<Kind::kGru>);
const KernelRegistrar kRnn("cpu", "rnn", "sequences", 20, make_plain<Kind::kRnn>);

}  // namespace

}  // namespace anymps::cpu
