// SPDX-License-Identifier: Apache-2.0
// Backpropagation through time by its definition: each sequence is run forward, keeping what its
// steps saw, and then back. The three layers differ only in their cells.
#include <algorithm>
#include <cmath>
#include <functional>

#include "drivers/reference/dense.h"
#include "ops/layers/recurrent.h"

namespace anymps {

namespace {

using Vector = std::vector<double>;

// One step of one sequence: what it saw, what it made, and the gradients on the way back.
struct Step {
  int64_t direction = 0, x_at = 0, y_at = 0;  // first elements in x and y
  Vector h, c;                                // the states before it
  Vector next_h, next_c;
  std::vector<Vector> before;  // for each gate, what its activation saw
  Vector dh, dc;               // of the states: after it, and then before it
};

class Layer {
 public:
  // `first_dy`: which input is the gradient of y.
  Layer(const ReferenceArgs& args, int64_t gates, size_t first_dy)
      : args_(args),
        gates_(gates),
        hidden_(args.attrs.i("hidden_size")),
        batch_first_(args.attrs.i("layout") == 1),
        steps_(args.in[0].extent(batch_first_ ? 1 : 0)),
        batch_(args.in[0].extent(batch_first_ ? 0 : 1)),
        width_(args.in[0].extent(2)),
        directions_(args.in[1].extent(0)),
        clip_(args.attrs.f("clip")),
        activations_(
            cell_activations(args.attrs, directions_, usual_activations(args.attrs, gates))),
        states_(directions_ * batch_ * hidden_),
        x_(read_dense<double>(args.in[0])),
        w_(read_dense<double>(args.in[1])),
        r_(read_dense<double>(args.in[2])),
        b_(read_or_zero(args, 3, directions_ * 2 * gates * hidden_)),
        dx_(x_.size()),
        dw_(w_.size()),
        dr_(r_.size()),
        db_(b_.size()),
        dy_(read_or_zero(args, first_dy, steps_ * states_)),
        dh_(read_or_zero(args, first_dy + 1, states_)),
        dc_(read_or_zero(args, first_dy + 2, states_)) {}

  int64_t hidden() const { return hidden_; }
  int64_t directions() const { return directions_; }
  // Activation `which` of a step's cell on what was clipped, and its slope on what was not.
  double act(const Step& step, size_t which, double z) const {
    return activation(step, which)(clip(z));
  }
  double slope(const Step& step, size_t which, double z) const {
    return clip_ > 0 && std::abs(z) > clip_ ? 0 : activation(step, which).slope(z);
  }
  double clip(double x) const { return clip_ > 0 ? std::clamp(x, -clip_, clip_) : x; }

  double from_x(const Step& step, int64_t gate, int64_t unit) const {
    double sum = b_[bias(step, gate, unit)];
    for (int64_t k = 0; k < width_; ++k)
      sum += x_[at(step.x_at + k)] * w_[at(row(step, gate, unit) * width_ + k)];
    return sum;
  }
  double from_h(const Step& step, const Vector& h, int64_t gate, int64_t unit) const {
    double sum = b_[bias(step, gates_ + gate, unit)];
    for (int64_t k = 0; k < hidden_; ++k)
      sum += h[at(k)] * r_[at(row(step, gate, unit) * hidden_ + k)];
    return sum;
  }
  // The ways back of the two; the latter adds to dh, the gradient of h.
  void back_x(const Step& step, int64_t gate, int64_t unit, double dz) {
    db_[bias(step, gate, unit)] += dz;
    for (int64_t k = 0; k < width_; ++k) {
      dw_[at(row(step, gate, unit) * width_ + k)] += dz * x_[at(step.x_at + k)];
      dx_[at(step.x_at + k)] += dz * w_[at(row(step, gate, unit) * width_ + k)];
    }
  }
  void back_h(const Step& step, const Vector& h, int64_t gate, int64_t unit, double dz,
              Vector& dh) {
    db_[bias(step, gates_ + gate, unit)] += dz;
    for (int64_t k = 0; k < hidden_; ++k) {
      dr_[at(row(step, gate, unit) * hidden_ + k)] += dz * h[at(k)];
      dh[at(k)] += dz * r_[at(row(step, gate, unit) * hidden_ + k)];
    }
  }

  using CellFn = std::function<void(Step&)>;
  void run(const CellFn& forward, const CellFn& backward, size_t h0, size_t c0) {
    const Vector h = read_or_zero(args_, h0, states_),
                 c = c0 ? read_or_zero(args_, c0, states_) : Vector(at(states_), 0.0);
    for (int64_t direction = 0; direction < directions_; ++direction)
      for (int64_t n = 0; n < batch_; ++n) sequence(direction, n, h, c, forward, backward);
    const Vector* results[] = {&dx_, &dw_, &dr_, &db_, &dh_, &dc_};
    for (size_t i = 0; i < std::min<size_t>(args_.out.size(), c0 ? 6 : 5); ++i)
      write_dense(args_.out[i], *results[i]);
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  const CellActivation& activation(const Step& step, size_t which) const {
    return activations_[at(step.direction) * (activations_.size() / at(directions_)) + which];
  }
  int64_t row(const Step& step, int64_t gate, int64_t unit) const {
    return (step.direction * gates_ + gate) * hidden_ + unit;
  }
  size_t bias(const Step& step, int64_t gate, int64_t unit) const {
    return at((step.direction * 2 * gates_ + gate) * hidden_ + unit);
  }
  int64_t length_of(int64_t n) const {
    if (!args_.has(4)) return steps_;
    const int64_t length = load_int(args_.in[4], n * args_.in[4].stride(0));
    require(length >= 0 && length <= steps_, "[{}] seq_lens has the entry {}, must be 0 to {}",
            args_.op.name, length, steps_);
    return length;
  }

  void sequence(int64_t direction, int64_t n, const Vector& h0, const Vector& c0,
                const CellFn& forward, const CellFn& backward) {
    const bool backwards = direction == 1 || args_.attrs.s("direction") == "reverse";
    const auto state = static_cast<std::ptrdiff_t>(
        (batch_first_ ? n * directions_ + direction : direction * batch_ + n) * hidden_);
    const auto part = [&](const Vector& all) {
      return Vector(all.begin() + state, all.begin() + state + hidden_);
    };
    std::vector<Step> steps(at(length_of(n)));
    Vector h = part(h0), c = part(c0);
    for (size_t t = 0; t < steps.size(); ++t) {
      const auto place = static_cast<int64_t>(backwards ? steps.size() - 1 - t : t);
      Step& step = steps[t];
      step.direction = direction;
      step.x_at = (batch_first_ ? n * steps_ + place : place * batch_ + n) * width_;
      step.y_at = (batch_first_ ? (n * steps_ + place) * directions_ + direction
                                : (place * directions_ + direction) * batch_ + n) *
                  hidden_;
      step.h = h;
      step.c = c;
      step.next_h = step.next_c = Vector(at(hidden_));
      step.before.assign(at(gates_), Vector(at(hidden_)));
      forward(step);
      h = step.next_h;
      c = step.next_c;
    }
    Vector dh = part(dh_), dc = part(dc_);
    for (size_t t = steps.size(); t-- > 0;) {
      Step& step = steps[t];
      step.dh = dh;
      step.dc = dc;
      for (int64_t u = 0; u < hidden_; ++u) step.dh[at(u)] += dy_[at(step.y_at + u)];
      backward(step);
      dh = step.dh;
      dc = step.dc;
    }
    std::copy(dh.begin(), dh.end(), dh_.begin() + state);
    std::copy(dc.begin(), dc.end(), dc_.begin() + state);
  }

  const ReferenceArgs& args_;
  int64_t gates_, hidden_;
  bool batch_first_;
  int64_t steps_, batch_, width_, directions_;
  double clip_;
  std::vector<CellActivation> activations_;  // of each direction
  int64_t states_;
  Vector x_, w_, r_, b_, dx_, dw_, dr_, db_, dy_, dh_, dc_;
};

}  // namespace

REFERENCE(lstm_gradient) {
  enum Gate { kInput, kOutput, kForget, kCell };
  enum Activation : size_t { kGate, kCandidate, kState };
  Layer layer(args, 4, 8);
  const auto hidden = static_cast<size_t>(layer.hidden());
  const bool input_forget = args.attrs.b("input_forget");
  const Vector peepholes = read_or_zero(args, 7, layer.directions() * 3 * layer.hidden());
  Vector dpeepholes(peepholes.size());
  const auto place = [&](const Step& step, Gate gate, size_t u) {
    return (static_cast<size_t>(step.direction) * 3 + gate) * hidden + u;
  };
  const auto opened = [&](const Step& step, Gate gate, size_t u) {
    if (gate == kForget && input_forget) return 1 - layer.act(step, kGate, step.before[kInput][u]);
    return layer.act(step, kGate, step.before[gate][u]);
  };
  const auto forward = [&](Step& step) {
    for (size_t u = 0; u < hidden; ++u) {
      const auto sum = [&](Gate gate) {
        const auto unit = static_cast<int64_t>(u);
        return layer.from_x(step, gate, unit) + layer.from_h(step, step.h, gate, unit);
      };
      for (const Gate gate : {kInput, kForget})
        step.before[gate][u] = sum(gate) + peepholes[place(step, gate, u)] * step.c[u];
      step.before[kCell][u] = sum(kCell);
      step.next_c[u] = opened(step, kForget, u) * step.c[u] +
                       opened(step, kInput, u) * layer.act(step, kCandidate, step.before[kCell][u]);
      step.before[kOutput][u] = sum(kOutput) + peepholes[place(step, kOutput, u)] * step.next_c[u];
      step.next_h[u] = opened(step, kOutput, u) * layer.act(step, kState, step.next_c[u]);
    }
  };
  const auto backward = [&](Step& step) {
    Vector dh(hidden), dc(hidden);
    for (size_t u = 0; u < hidden; ++u) {
      const double i = opened(step, kInput, u), f = opened(step, kForget, u),
                   o = opened(step, kOutput, u);
      const double g = layer.act(step, kCandidate, step.before[kCell][u]),
                   t = layer.act(step, kState, step.next_c[u]);
      double dz[4];
      const auto gate = [&](Gate which, double gradient, Activation activation = kGate) {
        dz[which] = gradient * layer.slope(step, activation, step.before[which][u]);
      };
      const auto peek = [&](Gate which, double state) {  // returns the gradient of the state
        dpeepholes[place(step, which, u)] += dz[which] * state;
        return dz[which] * peepholes[place(step, which, u)];
      };
      gate(kOutput, step.dh[u] * t);
      const double dnext = step.dc[u] + step.dh[u] * o * layer.slope(step, kState, step.next_c[u]) +
                           peek(kOutput, step.next_c[u]);
      gate(kInput, dnext * (input_forget ? g - step.c[u] : g));
      gate(kForget, input_forget ? 0 : dnext * step.c[u]);
      gate(kCell, dnext * i, kCandidate);
      dc[u] = dnext * f + peek(kInput, step.c[u]) + peek(kForget, step.c[u]);
      for (const Gate which : {kInput, kOutput, kForget, kCell}) {
        layer.back_x(step, which, static_cast<int64_t>(u), dz[which]);
        layer.back_h(step, step.h, which, static_cast<int64_t>(u), dz[which], dh);
      }
    }
    step.dh = std::move(dh);
    step.dc = std::move(dc);
  };
  layer.run(forward, backward, 5, 6);
  if (args.out.size() > 6) write_dense(args.out[6], dpeepholes);
}

REFERENCE(gru_gradient) {
  enum Gate { kUpdate, kReset, kNew };
  Layer layer(args, 3, 6);
  const auto hidden = static_cast<size_t>(layer.hidden());
  const bool linear = args.attrs.b("linear_before_reset");
  const auto opened = [&](const Step& step, Gate gate, size_t u) {
    return layer.act(step, gate == kNew ? 1 : 0, step.before[gate][u]);
  };
  const auto slope = [&](const Step& step, Gate gate, size_t u) {
    return layer.slope(step, gate == kNew ? 1 : 0, step.before[gate][u]);
  };
  const auto scaled = [&](const Step& step) {
    Vector h(hidden);
    for (size_t u = 0; u < hidden; ++u) h[u] = opened(step, kReset, u) * step.h[u];
    return h;
  };
  const auto forward = [&](Step& step) {
    for (size_t u = 0; u < hidden; ++u)
      for (const Gate gate : {kUpdate, kReset}) {
        const auto unit = static_cast<int64_t>(u);
        step.before[gate][u] =
            layer.from_x(step, gate, unit) + layer.from_h(step, step.h, gate, unit);
      }
    const Vector reset = scaled(step);
    for (size_t u = 0; u < hidden; ++u) {
      const auto unit = static_cast<int64_t>(u);
      const double recurrent =
          linear ? opened(step, kReset, u) * layer.from_h(step, step.h, kNew, unit)
                 : layer.from_h(step, reset, kNew, unit);
      step.before[kNew][u] = layer.from_x(step, kNew, unit) + recurrent;
      const double update = opened(step, kUpdate, u);
      step.next_h[u] = (1 - update) * opened(step, kNew, u) + update * step.h[u];
    }
  };
  const auto backward = [&](Step& step) {
    const Vector reset = scaled(step);
    Vector dh(hidden), dreset(hidden), dscaled(hidden);
    for (size_t u = 0; u < hidden; ++u) {
      const auto unit = static_cast<int64_t>(u);
      const double z = opened(step, kUpdate, u), r = opened(step, kReset, u);
      const double dnew = step.dh[u] * (1 - z) * slope(step, kNew, u);
      const double dupdate =
          step.dh[u] * (step.h[u] - opened(step, kNew, u)) * slope(step, kUpdate, u);
      dh[u] += step.dh[u] * z;
      layer.back_x(step, kNew, unit, dnew);
      if (linear) {
        dreset[u] = dnew * layer.from_h(step, step.h, kNew, unit);
        layer.back_h(step, step.h, kNew, unit, dnew * r, dh);
      } else {
        layer.back_h(step, reset, kNew, unit, dnew, dscaled);
      }
      layer.back_x(step, kUpdate, unit, dupdate);
      layer.back_h(step, step.h, kUpdate, unit, dupdate, dh);
    }
    for (size_t u = 0; u < hidden; ++u) {
      const auto unit = static_cast<int64_t>(u);
      if (!linear) {
        dreset[u] = dscaled[u] * step.h[u];
        dh[u] += dscaled[u] * opened(step, kReset, u);
      }
      const double dz = dreset[u] * slope(step, kReset, u);
      layer.back_x(step, kReset, unit, dz);
      layer.back_h(step, step.h, kReset, unit, dz, dh);
    }
    step.dh = std::move(dh);
  };
  layer.run(forward, backward, 5, 0);
}

REFERENCE(rnn_gradient) {
  Layer layer(args, 1, 6);
  const auto hidden = static_cast<size_t>(layer.hidden());
  const auto forward = [&](Step& step) {
    for (size_t u = 0; u < hidden; ++u) {
      const auto unit = static_cast<int64_t>(u);
      step.before[0][u] = layer.from_x(step, 0, unit) + layer.from_h(step, step.h, 0, unit);
      step.next_h[u] = layer.act(step, 0, step.before[0][u]);
    }
  };
  const auto backward = [&](Step& step) {
    Vector dh(hidden);
    for (size_t u = 0; u < hidden; ++u) {
      const double dz = step.dh[u] * layer.slope(step, 0, step.before[0][u]);
      layer.back_x(step, 0, static_cast<int64_t>(u), dz);
      layer.back_h(step, step.h, 0, static_cast<int64_t>(u), dz, dh);
    }
    step.dh = std::move(dh);
  };
  layer.run(forward, backward, 5, 0);
}

}  // namespace anymps
