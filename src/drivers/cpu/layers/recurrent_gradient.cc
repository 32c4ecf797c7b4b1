// SPDX-License-Identifier: Apache-2.0
// Backpropagation through time on the CPU, for dense tensors. Sequences are walked forward and back
// in parallel and keep what the gradients need; then places of dx and rows of the weights'
// gradients are summed in parallel, each by one thread and always in the same order.
#include <cmath>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/vectors.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/layers/recurrent_layer.h"
#include "drivers/cpu/threads.h"
#include "semantics/activation_formulas.h"

namespace anymps::cpu {

namespace {

using scalar::sigmoid;
using Kind = RecurrentKind;
enum class Activation { kTanh, kRelu, kSigmoid };

// What a step of a sequence keeps. The z are what activations see, dz_x and dz_h the gradients of
// the parts of z that come from x and from the state.
template <typename T>
struct Step {
  T *z, *dz_x, *dz_h;          // [gates, hidden]
  T *h, *c, *next_h, *next_c;  // [hidden]
  T* extra;                    // gru: the state that the new gate multiplies, or its product
};

template <typename T>
class RecurrentGradient final : public RecurrentLayer {
 public:
  RecurrentGradient(const KernelRequest& request, Kind kind)
      : RecurrentLayer(request, kind),
        clip_(static_cast<T>(request.attrs.f("clip"))),
        first_dy_(kind == Kind::kLstm ? 8 : 6) {
    if (kind == Kind::kRnn) {
      const std::string& name = request.attrs.s("activation");
      activation_ = name == "relu"      ? Activation::kRelu
                    : name == "sigmoid" ? Activation::kSigmoid
                                        : Activation::kTanh;
    }
    record_ = (3 * gates_ + 5) * hidden_;
  }

  size_t scratch_bytes() const override {
    const auto sequences = static_cast<size_t>(directions_ * batch_);
    return sequences * static_cast<size_t>(steps_ * record_ + 4 * hidden_) * sizeof(T);
  }

  void run(const KernelArgs& args) const override {
    clear(args.scratch, scratch_bytes());
    const auto cost = static_cast<double>(gates_ * hidden_ * (hidden_ + width_));
    parallel_for(0, directions_ * batch_, cost * static_cast<double>(steps_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) sequence(args, i / batch_, i % batch_);
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
    return in(args, weights) + (d * gates_ * hidden_ + row) * (weights == 1 ? width_ : hidden_);
  }
  Step<T> step(const KernelArgs& args, int64_t d, int64_t n, int64_t place) const {
    T* at = static_cast<T*>(args.scratch) + ((d * batch_ + n) * steps_ + place) * record_;
    const int64_t rows = gates_ * hidden_;
    T* states = at + 3 * rows;
    return {at,
            at + rows,
            kind_ == Kind::kGru ? at + 2 * rows : at + rows,
            states,
            states + hidden_,
            states + 2 * hidden_,
            states + 3 * hidden_,
            states + 4 * hidden_};
  }
  T clip(T x) const { return clip_ > 0 ? std::clamp(x, -clip_, clip_) : x; }
  T slope(T x) const { return clip_ > 0 && std::abs(x) > clip_ ? T(0) : T(1); }
  T opened(const Step<T>& s, int64_t gate, int64_t u) const {
    return sigmoid(clip(s.z[gate * hidden_ + u]));
  }
  T peephole(const KernelArgs& args, int64_t d, int64_t gate, int64_t u) const {
    return has(7) && kind_ == Kind::kLstm ? in(args, 7)[(d * 3 + gate) * hidden_ + u] : T(0);
  }

  void sequence(const KernelArgs& args, int64_t d, int64_t n) const {
    const int64_t length = length_of(args, n), state = state_at(d, n);
    const bool backwards = d == 1 || reverse_, lstm = kind_ == Kind::kLstm;
    T* dh = static_cast<T*>(args.scratch) + directions_ * batch_ * steps_ * record_ +
            (d * batch_ + n) * 4 * hidden_;
    T *before = dh + hidden_, *dc = dh + 2 * hidden_, *spare = dh + 3 * hidden_;
    const auto place = [&](int64_t t) { return backwards ? length - 1 - t : t; };
    const T *h = in(args, 5) ? in(args, 5) + state : nullptr,
            *c = lstm && in(args, 6) ? in(args, 6) + state : nullptr;
    for (int64_t t = 0; t < length; ++t) {
      const Step<T> s = step(args, d, n, place(t));
      if (h) std::copy_n(h, hidden_, s.h);
      if (c) std::copy_n(c, hidden_, s.c);
      forward(args, s, d, in(args, 0) + x_at(n, place(t)));
      h = s.next_h;
      c = s.next_c;
    }
    if (const T* given = in(args, first_dy_ + 1)) std::copy_n(given + state, hidden_, dh);
    if (const T* given = lstm ? in(args, first_dy_ + 2) : nullptr)
      std::copy_n(given + state, hidden_, dc);
    for (int64_t t = length; t-- > 0;) {
      const Step<T> s = step(args, d, n, place(t));
      if (const T* dy = in(args, first_dy_))
        add_scaled(dh, T(1), dy + y_at(d, n, place(t)), hidden_);
      std::fill_n(before, hidden_, T(0));
      if (lstm)
        lstm_back(args, s, d, dh, dc);
      else if (kind_ == Kind::kGru)
        gru_back(args, s, d, dh, before, spare);
      else
        rnn_back(s, dh);
      if (kind_ != Kind::kGru) back(args, d, 0, gates_, s.dz_h, before);
      std::copy_n(before, hidden_, dh);
    }
    if (T* dh0 = out(args, 4)) std::copy_n(dh, hidden_, dh0 + state);
    if (T* dc0 = lstm ? out(args, 5) : nullptr) std::copy_n(dc, hidden_, dc0 + state);
  }

  // to += r^T dz for some gates.
  void back(const KernelArgs& args, int64_t d, int64_t first, int64_t last, const T* dz,
            T* to) const {
    for (int64_t i = first * hidden_; i < last * hidden_; ++i)
      add_scaled(to, dz[i], row(args, 2, d, i), hidden_);
  }
  T from_state(const KernelArgs& args, int64_t d, int64_t i, const T* h) const {
    const T* b = in(args, 3);
    return dot(row(args, 2, d, i), h, hidden_) + (b ? b[(d * 2 + 1) * gates_ * hidden_ + i] : T(0));
  }

  void forward(const KernelArgs& args, const Step<T>& s, int64_t d, const T* x) const {
    const T* b = in(args, 3);
    const int64_t plain = kind_ == Kind::kGru ? 2 : gates_;  // gates that are sums of both parts
    for (int64_t i = 0; i < gates_ * hidden_; ++i) {
      s.z[i] = dot(row(args, 1, d, i), x, width_) + (b ? b[d * 2 * gates_ * hidden_ + i] : T(0));
      if (i < plain * hidden_) s.z[i] += from_state(args, d, i, s.h);
    }
    if (kind_ == Kind::kLstm) return lstm_forward(args, s, d);
    if (kind_ == Kind::kGru) return gru_forward(args, s, d);
    for (int64_t u = 0; u < hidden_; ++u) {
      const T z = clip(s.z[u]);
      s.next_h[u] = activation_ == Activation::kRelu      ? scalar::relu(z)
                    : activation_ == Activation::kSigmoid ? sigmoid(z)
                                                          : std::tanh(z);
    }
  }

  enum LstmGate : int64_t { kInput, kOutput, kForget, kCell };

  void lstm_forward(const KernelArgs& args, const Step<T>& s, int64_t d) const {
    for (int64_t u = 0; u < hidden_; ++u) {
      s.z[kInput * hidden_ + u] += peephole(args, d, kInput, u) * s.c[u];
      s.z[kForget * hidden_ + u] += peephole(args, d, kForget, u) * s.c[u];
      s.next_c[u] = opened(s, kForget, u) * s.c[u] +
                    opened(s, kInput, u) * std::tanh(clip(s.z[kCell * hidden_ + u]));
      s.z[kOutput * hidden_ + u] += peephole(args, d, kOutput, u) * s.next_c[u];
      s.next_h[u] = opened(s, kOutput, u) * std::tanh(clip(s.next_c[u]));
    }
  }
  void lstm_back(const KernelArgs& args, const Step<T>& s, int64_t d, const T* dh, T* dc) const {
    for (int64_t u = 0; u < hidden_; ++u) {
      const T i = opened(s, kInput, u), f = opened(s, kForget, u), o = opened(s, kOutput, u);
      const T g = std::tanh(clip(s.z[kCell * hidden_ + u])), t = std::tanh(clip(s.next_c[u]));
      const auto gate = [&](int64_t which, T gradient) {
        const int64_t at = which * hidden_ + u;
        return s.dz_x[at] = gradient * slope(s.z[at]);
      };
      const T to_output = gate(kOutput, dh[u] * t * o * (1 - o));
      const T dnext = dc[u] + dh[u] * o * (1 - t * t) * slope(s.next_c[u]) +
                      to_output * peephole(args, d, kOutput, u);
      const T to_input = gate(kInput, dnext * g * i * (1 - i));
      const T to_forget = gate(kForget, dnext * s.c[u] * f * (1 - f));
      gate(kCell, dnext * i * (1 - g * g));
      dc[u] = dnext * f + to_input * peephole(args, d, kInput, u) +
              to_forget * peephole(args, d, kForget, u);
    }
  }

  enum GruGate : int64_t { kUpdate, kReset, kNew };

  void gru_forward(const KernelArgs& args, const Step<T>& s, int64_t d) const {
    for (int64_t u = 0; u < hidden_; ++u)
      s.extra[u] =
          linear_ ? from_state(args, d, kNew * hidden_ + u, s.h) : opened(s, kReset, u) * s.h[u];
    for (int64_t u = 0; u < hidden_; ++u) {
      const int64_t at = kNew * hidden_ + u;
      s.z[at] += linear_ ? opened(s, kReset, u) * s.extra[u] : from_state(args, d, at, s.extra);
      const T update = opened(s, kUpdate, u);
      s.next_h[u] = (1 - update) * std::tanh(clip(s.z[at])) + update * s.h[u];
    }
  }
  void gru_back(const KernelArgs& args, const Step<T>& s, int64_t d, const T* dh, T* before,
                T* scaled) const {
    for (int64_t u = 0; u < hidden_; ++u) {
      const int64_t at = kNew * hidden_ + u, update = kUpdate * hidden_ + u;
      const T z = opened(s, kUpdate, u), n = std::tanh(clip(s.z[at]));
      s.dz_x[at] = dh[u] * (1 - z) * (1 - n * n) * slope(s.z[at]);
      s.dz_h[at] = linear_ ? s.dz_x[at] * opened(s, kReset, u) : s.dz_x[at];
      s.dz_x[update] = s.dz_h[update] = dh[u] * (s.h[u] - n) * z * (1 - z) * slope(s.z[update]);
      before[u] = dh[u] * z;
    }
    std::fill_n(scaled, hidden_, T(0));
    back(args, d, kNew, kNew + 1, s.dz_h, linear_ ? before : scaled);
    for (int64_t u = 0; u < hidden_; ++u) {
      const int64_t at = kReset * hidden_ + u;
      const T r = opened(s, kReset, u);
      const T dreset = linear_ ? s.dz_x[kNew * hidden_ + u] * s.extra[u] : scaled[u] * s.h[u];
      before[u] += scaled[u] * r;
      s.dz_x[at] = s.dz_h[at] = dreset * r * (1 - r) * slope(s.z[at]);
    }
    back(args, d, kUpdate, kNew, s.dz_h, before);
  }

  void rnn_back(const Step<T>& s, const T* dh) const {
    for (int64_t u = 0; u < hidden_; ++u) {
      const T y = s.next_h[u];
      const T own = activation_ == Activation::kRelu      ? T(y > 0)
                    : activation_ == Activation::kSigmoid ? y * (1 - y)
                                                          : 1 - y * y;
      s.dz_x[u] = dh[u] * own * slope(s.z[u]);
    }
  }

  void sum_places(const KernelArgs& args) const {
    T* dx = out(args, 0);
    const int64_t rows = gates_ * hidden_;
    parallel_for(0, batch_ * steps_, static_cast<double>(directions_ * rows * width_) * 0.3,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t n = i / steps_, place = i % steps_;
                     T* to = dx + x_at(n, place);
                     std::fill_n(to, width_, T(0));
                     const bool used = place < length_of(args, n);
                     for (int64_t d = 0; used && d < directions_; ++d) {
                       const T* dz = step(args, d, n, place).dz_x;
                       for (int64_t k = 0; k < rows; ++k)
                         add_scaled(to, dz[k], row(args, 1, d, k), width_);
                     }
                   }
                 });
  }

  void sum_rows(const KernelArgs& args) const {
    const int64_t rows = gates_ * hidden_;
    const double ns =
        static_cast<double>(batch_ * steps_) * (4 + 0.3 * static_cast<double>(width_ + hidden_));
    parallel_for(0, directions_ * rows, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum_row(args, i / rows, i % rows);
    });
  }
  void sum_row(const KernelArgs& args, int64_t d, int64_t k) const {
    const int64_t rows = gates_ * hidden_, gate = k / hidden_, u = k % hidden_;
    T *dw = out(args, 1), *dr = out(args, 2), *db = out(args, 3), *dp = out(args, 6);
    if (dw) std::fill_n(dw += (d * rows + k) * width_, width_, T(0));
    if (dr) std::fill_n(dr += (d * rows + k) * hidden_, hidden_, T(0));
    const bool scaled = kind_ == Kind::kGru && gate == kNew && !linear_;
    T sum_x = 0, sum_h = 0, sum_c = 0;
    for (int64_t n = 0; n < batch_; ++n)
      for (int64_t place = 0, length = length_of(args, n); place < length; ++place) {
        const Step<T> s = step(args, d, n, place);
        if (dw) add_scaled(dw, s.dz_x[k], in(args, 0) + x_at(n, place), width_);
        if (dr) add_scaled(dr, s.dz_h[k], scaled ? s.extra : s.h, hidden_);
        sum_x += s.dz_x[k];
        sum_h += s.dz_h[k];
        sum_c += s.dz_x[k] * (gate == kOutput ? s.next_c : s.c)[u];
      }
    if (db) db[d * 2 * rows + k] = sum_x, db[(d * 2 + 1) * rows + k] = sum_h;
    if (dp && gate < 3) dp[(d * 3 + gate) * hidden_ + u] = sum_c;
  }

  T clip_;
  size_t first_dy_;
  Activation activation_ = Activation::kTanh;
  int64_t record_ = 0;
};

template <Kind kind>
KernelPtr make_gradient(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (!request.attrs.s("activations").empty())
    return refuse(why, "activations other than the usual");
  if (kind == Kind::kLstm && request.attrs.b("input_forget")) return refuse(why, "input_forget");
  if (is_half(dtype)) return widened(request, make_gradient<kind>, why);
  if (!dense(request, why)) return nullptr;
  if (dtype == DType::kF64) return std::make_shared<RecurrentGradient<double>>(request, kind);
  return std::make_shared<RecurrentGradient<float>>(request, kind);
}

const KernelRegistrar kLstm("cpu", "lstm_gradient", "sequences", 10, make_gradient<Kind::kLstm>);
const KernelRegistrar kGru("cpu", "gru_gradient", "sequences", 10, make_gradient<Kind::kGru>);
const KernelRegistrar kRnn("cpu", "rnn_gradient", "sequences", 10, make_gradient<Kind::kRnn>);

}  // namespace

}  // namespace anymps::cpu
