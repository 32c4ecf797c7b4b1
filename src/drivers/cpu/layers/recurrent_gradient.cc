// SPDX-License-Identifier: Apache-2.0
// Backpropagation through time on the CPU, for dense tensors. Sequences are walked forward and back
// in parallel and keep what the gradients need; then places of dx and rows of the weights'
// gradients are summed in parallel, each by one thread and always in the same order.
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/layers/recurrent_layer.h"
#include "drivers/cpu/threads.h"
#include "semantics/vectors.h"

namespace anymps::cpu {

namespace {

using Kind = RecurrentKind;

// What a step of a sequence keeps. The z are what activations see, dz_x and dz_h the gradients of
// the parts of z that come from x and from the state.
template <typename T>
struct Step {
  T *z, *y, *dz_x, *dz_h;      // [gates, hidden]; y: what the activations gave
  T *h, *c, *next_h, *next_c;  // [hidden]
  T *scaled, *recurrent;       // gru: the state that the new gate multiplies, and its product
  T* state;                    // lstm: what the output gate lets through
};

template <typename T>
class RecurrentGradient final : public RecurrentLayer {
 public:
  RecurrentGradient(const KernelRequest& request, Kind kind)
      : RecurrentLayer(request, kind),
        first_dy_(kind == Kind::kLstm ? 8 : 6),
        record_(((kind == Kind::kGru ? 4 : 3) * gates + 6) * hidden) {}

  size_t scratch_bytes() const override {
    const size_t sequences = directions * batch;
    return sequences * static_cast<size_t>(steps * record_ + 4 * hidden) * sizeof(T);
  }

  void run(const KernelArgs& args) const override {
    clear(args.scratch, scratch_bytes());
    const auto cost = static_cast<double>(gates * hidden * (hidden + width));
    parallel_for(0, directions * batch, cost * static_cast<double>(steps),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) sequence(args, i / batch, i % batch);
                 });
    sum_places(args);
    sum_rows(args);
  }

 private:
  const T* in(const KernelArgs& args, size_t i) const {
    return has(i) ? static_cast<const T*>(args.inputs[i]) : nullptr;
  }
  T* out(const KernelArgs& args, size_t i) const {
    return i < outputs_ ? static_cast<T*>(args.outputs[i]) : nullptr;
  }
  const T* row(const KernelArgs& args, size_t weights, int64_t d, int64_t row) const {
    return in(args, weights) + (d * gates * hidden + row) * (weights == 1 ? width : hidden);
  }
  Step<T> step(const KernelArgs& args, int64_t d, int64_t n, int64_t place) const {
    T* at = static_cast<T*>(args.scratch) + ((d * batch + n) * steps + place) * record_;
    const int64_t rows = gates * hidden;
    const bool gru = kind_ == Kind::kGru;  // the others have the same gradient for both parts of z
    T* states = at + (gru ? 4 : 3) * rows;
    return {at,
            at + rows,
            at + 2 * rows,
            gru ? at + 3 * rows : at + 2 * rows,
            states,
            states + hidden,
            states + 2 * hidden,
            states + 3 * hidden,
            states + 4 * hidden,
            states + 5 * hidden,
            states + 4 * hidden};
  }

  void sequence(const KernelArgs& args, int64_t d, int64_t n) const {
    const int64_t length = length_of(args, n), state = state_at(d, n);
    const bool lstm = kind_ == Kind::kLstm;
    T* dh = static_cast<T*>(args.scratch) + directions * batch * steps * record_ +
            (d * batch + n) * 4 * hidden;
    T *before = dh + hidden, *dc = dh + 2 * hidden, *spare = dh + 3 * hidden;
    const T *h = in(args, 5) ? in(args, 5) + state : nullptr,
            *c = lstm && in(args, 6) ? in(args, 6) + state : nullptr;
    for (int64_t t = 0; t < length; ++t) {
      const Step<T> s = step(args, d, n, place(d, t, length));
      if (h) std::copy_n(h, hidden, s.h);
      if (c) std::copy_n(c, hidden, s.c);
      forward(args, s, d, in(args, 0) + x_at(n, place(d, t, length)));
      h = s.next_h;
      c = s.next_c;
    }
    if (const T* given = in(args, first_dy_ + 1)) std::copy_n(given + state, hidden, dh);
    if (const T* given = lstm ? in(args, first_dy_ + 2) : nullptr)
      std::copy_n(given + state, hidden, dc);
    for (int64_t t = length; t-- > 0;) {
      const Step<T> s = step(args, d, n, place(d, t, length));
      if (const T* dy = in(args, first_dy_))
        add_scaled(dh, T(1), dy + y_at(d, n, place(d, t, length)), hidden);
      std::fill_n(before, hidden, T(0));
      if (lstm)
        lstm_back(args, s, d, dh, dc);
      else if (kind_ == Kind::kGru)
        gru_back(args, s, d, dh, before, spare);
      else
        rnn_back(s, d, dh);
      if (kind_ != Kind::kGru) back_rows(args, d, 0, gates, s.dz_h, before);
      std::copy_n(before, hidden, dh);
    }
    if (T* dh0 = out(args, 4)) std::copy_n(dh, hidden, dh0 + state);
    if (T* dc0 = lstm ? out(args, 5) : nullptr) std::copy_n(dc, hidden, dc0 + state);
  }

  // to += r^T dz for some gates.
  void back_rows(const KernelArgs& args, int64_t d, int64_t first, int64_t last, const T* dz,
                 T* to) const {
    for (int64_t i = first * hidden; i < last * hidden; ++i)
      add_scaled(to, dz[i], row(args, 2, d, i), hidden);
  }
  T from_state(const KernelArgs& args, int64_t d, int64_t i, const T* h) const {
    const T* b = in(args, 3);
    return dot(row(args, 2, d, i), h, hidden) + (b ? b[(d * 2 + 1) * gates * hidden + i] : T(0));
  }

  void forward(const KernelArgs& args, const Step<T>& s, int64_t d, const T* x) const {
    const T* b = in(args, 3);
    const int64_t plain = kind_ == Kind::kGru ? 2 : gates;  // gates that are sums of both parts
    for (int64_t i = 0; i < gates * hidden; ++i) {
      s.z[i] = dot(row(args, 1, d, i), x, width) + (b ? b[d * 2 * gates * hidden + i] : T(0));
      if (i < plain * hidden) s.z[i] += from_state(args, d, i, s.h);
    }
    if (kind_ == Kind::kLstm) return lstm_forward(args, s, d);
    if (kind_ == Kind::kGru) return gru_forward(args, s, d);
    for (int64_t u = 0; u < hidden; ++u) s.next_h[u] = act<T>(d)(0, s.z[u]);
  }

  void lstm_forward(const KernelArgs& args, const Step<T>& s, int64_t d) const {
    T peephole[3];
    for (int64_t u = 0; u < hidden; ++u) {
      LstmUnit<T> unit = lstm_unit(args, d, u, s.z, s.c, peephole);
      unit.forward(act<T>(d));
      for (int64_t gate = 0; gate < 4; ++gate) {
        s.z[gate * hidden + u] = unit.z[gate];
        s.y[gate * hidden + u] = unit.y[gate];
      }
      s.next_c[u] = unit.next_c;
      s.state[u] = unit.state;
      s.next_h[u] = unit.next_h;
    }
  }
  void lstm_back(const KernelArgs& args, const Step<T>& s, int64_t d, const T* dh, T* dc) const {
    T peephole[3];
    for (int64_t u = 0; u < hidden; ++u) {
      LstmUnit<T> unit = lstm_unit(args, d, u, s.z, s.c, peephole);
      for (int64_t gate = 0; gate < 4; ++gate) unit.y[gate] = s.y[gate * hidden + u];
      unit.next_c = s.next_c[u];
      unit.state = s.state[u];
      const auto back = unit.backward(act<T>(d), dh[u], dc[u]);
      for (int64_t gate = 0; gate < 4; ++gate) s.dz_x[gate * hidden + u] = back.dz[gate];
      dc[u] = back.dc;
    }
  }

  // A unit with what its activations gave.
  GruUnit<T> known_unit(const Step<T>& s, int64_t u) const {
    GruUnit<T> unit = gru_unit(u, s.z, s.h);
    for (int64_t gate = 0; gate < 3; ++gate) unit.y[gate] = s.y[gate * hidden + u];
    return unit;
  }
  void gru_forward(const KernelArgs& args, const Step<T>& s, int64_t d) const {
    using Unit = GruUnit<T>;
    const RecurrentActivations<T> activations = act<T>(d);
    for (int64_t u = 0; u < hidden; ++u) {
      Unit unit = gru_unit(u, s.z, s.h);
      s.scaled[u] = unit.scaled(activations);
      s.y[Unit::kReset * hidden + u] = unit.y[Unit::kReset];
    }
    for (int64_t u = 0; u < hidden; ++u) {
      Unit unit = known_unit(s, u);
      s.recurrent[u] = from_state(args, d, Unit::kNew * hidden + u, s.scaled);
      unit.forward(activations, s.recurrent[u]);
      s.z[Unit::kNew * hidden + u] = unit.z[Unit::kNew];
      for (int64_t gate = 0; gate < 3; ++gate) s.y[gate * hidden + u] = unit.y[gate];
      s.next_h[u] = unit.next_h;
    }
  }
  void gru_back(const KernelArgs& args, const Step<T>& s, int64_t d, const T* dh, T* before,
                T* dscaled) const {
    using Unit = GruUnit<T>;
    const RecurrentActivations<T> activations = act<T>(d);
    const auto put = [&](int64_t gate, int64_t u, T from_x, T from_h) {
      s.dz_x[gate * hidden + u] = from_x;
      s.dz_h[gate * hidden + u] = from_h;
    };
    for (int64_t u = 0; u < hidden; ++u) {
      const auto back = known_unit(s, u).backward(activations, dh[u]);
      put(Unit::kNew, u, back.dz[Unit::kNew], back.drecurrent);
      put(Unit::kUpdate, u, back.dz[Unit::kUpdate], back.dz[Unit::kUpdate]);
      before[u] = back.dh;
    }
    std::fill_n(dscaled, hidden, T(0));
    back_rows(args, d, Unit::kNew, Unit::kNew + 1, s.dz_h, linear_ ? before : dscaled);
    for (int64_t u = 0; u < hidden; ++u) {
      const T dz = known_unit(s, u).reset(activations, s.dz_x[Unit::kNew * hidden + u],
                                          s.recurrent[u], dscaled[u], before[u]);
      put(Unit::kReset, u, dz, dz);
    }
    back_rows(args, d, Unit::kUpdate, Unit::kNew, s.dz_h, before);
  }

  void rnn_back(const Step<T>& s, int64_t d, const T* dh) const {
    for (int64_t u = 0; u < hidden; ++u)
      s.dz_x[u] = dh[u] * act<T>(d).slope(0, s.z[u], s.next_h[u]);
  }

  void sum_places(const KernelArgs& args) const {
    T* dx = out(args, 0);
    const int64_t rows = gates * hidden;
    parallel_for(0, batch * steps, static_cast<double>(directions * rows * width) * 0.3,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t n = i / steps, place = i % steps;
                     T* to = dx + x_at(n, place);
                     std::fill_n(to, width, T(0));
                     const bool used = place < length_of(args, n);
                     for (int64_t d = 0; used && d < directions; ++d) {
                       const T* dz = step(args, d, n, place).dz_x;
                       for (int64_t k = 0; k < rows; ++k)
                         add_scaled(to, dz[k], row(args, 1, d, k), width);
                     }
                   }
                 });
  }

  void sum_rows(const KernelArgs& args) const {
    const int64_t rows = gates * hidden;
    const double ns =
        static_cast<double>(batch * steps) * (4 + 0.3 * static_cast<double>(width + hidden));
    parallel_for(0, directions * rows, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum_row(args, i / rows, i % rows);
    });
  }
  void sum_row(const KernelArgs& args, int64_t d, int64_t k) const {
    const int64_t rows = gates * hidden, gate = k / hidden, u = k % hidden;
    T *dw = out(args, 1), *dr = out(args, 2), *db = out(args, 3), *dp = out(args, 6);
    if (dw) std::fill_n(dw += (d * rows + k) * width, width, T(0));
    if (dr) std::fill_n(dr += (d * rows + k) * hidden, hidden, T(0));
    const bool scaled = kind_ == Kind::kGru && gate == GruUnit<T>::kNew;
    T sum_x = 0, sum_h = 0, sum_c = 0;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t place = 0, length = length_of(args, n); place < length; ++place) {
        const Step<T> s = step(args, d, n, place);
        if (dw) add_scaled(dw, s.dz_x[k], in(args, 0) + x_at(n, place), width);
        if (dr) add_scaled(dr, s.dz_h[k], scaled ? s.scaled : s.h, hidden);
        sum_x += s.dz_x[k];
        sum_h += s.dz_h[k];
        sum_c += s.dz_x[k] * (gate == LstmUnit<T>::kOutput ? s.next_c : s.c)[u];
      }
    if (db) db[d * 2 * rows + k] = sum_x, db[(d * 2 + 1) * rows + k] = sum_h;
    if (dp && gate < 3) dp[(d * 3 + gate) * hidden + u] = sum_c;
  }

  size_t first_dy_;
  int64_t record_;
};

const KernelRegistrar kLstm("cpu", "lstm_gradient", "sequences", 10,
                            make_recurrent<RecurrentGradient, Kind::kLstm>);
const KernelRegistrar kGru("cpu", "gru_gradient", "sequences", 10,
                           make_recurrent<RecurrentGradient, Kind::kGru>);
const KernelRegistrar kRnn("cpu", "rnn_gradient", "sequences", 10,
                           make_recurrent<RecurrentGradient, Kind::kRnn>);

}  // namespace

}  // namespace anymps::cpu
