// SPDX-License-Identifier: Apache-2.0
// Recurrent layers that oneDNN's kernels refuse: weights that change from run to run, as in
// training, sequences of several lengths, peepholes, clipping, other activations, f64. Sequences
// are walked in parallel; what comes from x is computed for all steps first.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/layers/recurrent_layer.h"
#include "drivers/cpu/threads.h"
#include "semantics/vectors.h"

namespace anymps::cpu {

namespace {

using Kind = RecurrentKind;

template <typename T>
class RecurrentPlain final : public RecurrentLayer {
 public:
  RecurrentPlain(const KernelRequest& request, Kind kind)
      : RecurrentLayer(request, kind), y_bytes_(request.out().bytes()) {}

  // For each sequence: z of all steps, the two states, and the scaled state of a gru.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(directions * batch * record()) * sizeof(T);
  }

  void run(const KernelArgs& args) const override {
    clear(args.outputs[0], y_bytes_);
    const int64_t rows = gates * hidden, sequences = directions * batch;
    parallel_for(0, sequences * steps, 0.3 * static_cast<double>(rows * width),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     from_x(args, i / steps / batch, i / steps % batch, i % steps);
                 });
    parallel_for(0, sequences, 0.5 * static_cast<double>(steps * rows * hidden),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) sequence(args, i / batch, i % batch);
                 });
  }

 private:
  int64_t record() const { return (steps * gates + 3) * hidden; }
  const T* in(const KernelArgs& args, size_t i) const {
    return has(i) ? static_cast<const T*>(args.inputs[i]) : nullptr;
  }
  T* memory(const KernelArgs& args, int64_t d, int64_t n) const {
    return static_cast<T*>(args.scratch) + (d * batch + n) * record();
  }
  T bias(const KernelArgs& args, int64_t d, int64_t half, int64_t row) const {
    return has(3) ? in(args, 3)[(d * 2 + half) * gates * hidden + row] : T(0);
  }

  void from_x(const KernelArgs& args, int64_t d, int64_t n, int64_t place) const {
    if (place >= length_of(args, n)) return;
    const int64_t rows = gates * hidden;
    const T* x = in(args, 0) + x_at(n, place);
    T* z = memory(args, d, n) + place * rows;
    for (int64_t i = 0; i < rows; ++i)
      z[i] = dot(in(args, 1) + (d * rows + i) * width, x, width) + bias(args, d, 0, i);
  }
  T from_state(const KernelArgs& args, int64_t d, int64_t row, const T* h) const {
    return dot(in(args, 2) + (d * gates * hidden + row) * hidden, h, hidden) +
           bias(args, d, 1, row);
  }

  void sequence(const KernelArgs& args, int64_t d, int64_t n) const {
    const int64_t length = length_of(args, n);
    const int64_t state = state_at(d, n);
    const bool lstm = kind_ == Kind::kLstm;
    T* z = memory(args, d, n);
    T *h = z + steps * gates * hidden, *c = h + hidden, *scaled = c + hidden;
    const auto start = [&](T* to, const T* from) {
      from ? std::copy_n(from + state, hidden, to) : std::fill_n(to, hidden, T(0));
    };
    start(h, in(args, 5));
    start(c, lstm ? in(args, 6) : nullptr);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t at = place(d, t, length);
      T* own = z + at * gates * hidden;
      const int64_t plain = kind_ == Kind::kGru ? 2 : gates;  // gates that are sums of both parts
      for (int64_t i = 0; i < plain * hidden; ++i) own[i] += from_state(args, d, i, h);
      if (lstm)
        lstm_step(args, d, own, h, c);
      else if (kind_ == Kind::kGru)
        gru_step(args, d, own, h, scaled);
      else
        for (int64_t u = 0; u < hidden; ++u) h[u] = act<T>(d)(0, own[u]);
      std::copy_n(h, hidden, static_cast<T*>(args.outputs[0]) + y_at(d, n, at));
    }
    if (outputs_ > 1) std::copy_n(h, hidden, static_cast<T*>(args.outputs[1]) + state);
    if (outputs_ > 2) std::copy_n(c, hidden, static_cast<T*>(args.outputs[2]) + state);
  }

  void lstm_step(const KernelArgs& args, int64_t d, const T* z, T* h, T* c) const {
    T peephole[3];
    for (int64_t u = 0; u < hidden; ++u) {
      LstmUnit<T> unit = lstm_unit(args, d, u, z, c, peephole);
      unit.forward(act<T>(d));
      c[u] = unit.next_c;
      h[u] = unit.next_h;
    }
  }
  void gru_step(const KernelArgs& args, int64_t d, T* z, T* h, T* scaled) const {
    using Unit = GruUnit<T>;
    const RecurrentActivations<T> activations = act<T>(d);
    T* reset = z + Unit::kReset * hidden;  // becomes what its activation gives
    for (int64_t u = 0; u < hidden; ++u) {
      Unit unit = gru_unit(u, z, h);
      scaled[u] = unit.scaled(activations);
      reset[u] = unit.y[Unit::kReset];
    }
    for (int64_t u = 0; u < hidden; ++u) {
      Unit unit = gru_unit(u, z, h);
      unit.y[Unit::kReset] = reset[u];
      unit.forward(activations, from_state(args, d, Unit::kNew * hidden + u, scaled));
      h[u] = unit.next_h;
    }
  }

  size_t y_bytes_;
};

const KernelRegistrar kLstm("cpu", "lstm", "sequences", 20,
                            make_recurrent<RecurrentPlain, Kind::kLstm>);
const KernelRegistrar kGru("cpu", "gru", "sequences", 20,
                           make_recurrent<RecurrentPlain, Kind::kGru>);
const KernelRegistrar kRnn("cpu", "rnn", "sequences", 20,
                           make_recurrent<RecurrentPlain, Kind::kRnn>);

}  // namespace

}  // namespace anymps::cpu
