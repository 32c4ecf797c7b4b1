// SPDX-License-Identifier: Apache-2.0
// Backpropagation through time by its definition: each sequence is run forward, keeping what its
// steps saw, and then back. The three layers differ only in their cells.
#include <algorithm>
#include <functional>

#include "drivers/reference/layers/recurrent_layer.h"

namespace anymps {

namespace {

using Vector = RecurrentVector;

// One step of one sequence: what it saw, what it made, and the gradients on the way back. Unit is
// what a unit of its cell keeps.
template <typename Unit>
struct Step {
  int64_t direction = 0, x_at = 0, y_at = 0;  // first elements in x and y
  Vector h, c;                                // the states before it
  Vector next_h, next_c;
  std::vector<Unit> units;
  Vector recurrent, scaled;  // gru: what comes from the state for the new gate, and from what
  Vector dh, dc;             // of the states: after it, and then before it
};

template <typename Unit>
class BackwardLayer : public RecurrentInputs {
 public:
  using CellFn = std::function<void(Step<Unit>&)>;

  // `first_dy`: which input is the gradient of y.
  BackwardLayer(const ReferenceArgs& args, int64_t gates, size_t first_dy)
      : RecurrentInputs(args, gates),
        dx_(x.size()),
        dw_(w.size()),
        dr_(r.size()),
        db_(b.size()),
        dy_(read_or_zero(args, first_dy, steps * states())),
        dh_(read_or_zero(args, first_dy + 1, states())),
        dc_(gates == 4 ? read_or_zero(args, first_dy + 2, states()) : Vector(dh_.size(), 0.0)) {
    const size_t last = args.op.inputs.size() - 1;
    if (args.has(last)) reserve_ = read_dense<double>(args.in[last]);
  }

  // The ways back of from_x and from_h; the latter adds to dh, the gradient of h.
  void back_x(const Step<Unit>& step, size_t gate, int64_t unit, double dz) {
    const size_t first = row(step.direction, gate, unit) * static_cast<size_t>(width);
    db_[bias(step.direction, 0, gate, unit)] += dz;
    for (size_t k = 0; k < static_cast<size_t>(width); ++k) {
      const size_t from = static_cast<size_t>(step.x_at) + k;
      dw_[first + k] += dz * x[from];
      dx_[from] += dz * w[first + k];
    }
  }
  void back_h(const Step<Unit>& step, const Vector& h, size_t gate, int64_t unit, double dz,
              Vector& dh) {
    const size_t first = row(step.direction, gate, unit) * static_cast<size_t>(hidden);
    db_[bias(step.direction, 1, gate, unit)] += dz;
    for (size_t k = 0; k < static_cast<size_t>(hidden); ++k) {
      dr_[first + k] += dz * h[k];
      dh[k] += dz * r[first + k];
    }
  }

  // `recall` makes of what forward kept what it would have left; unit.y and unit.z, of which the
  // former are always there, are already set.
  void run(const CellFn& forward, const CellFn& recall, const CellFn& backward, bool has_cell) {
    const Vector h = read_or_zero(args, 5, states()),
                 c = has_cell ? read_or_zero(args, 6, states()) : Vector(h.size(), 0.0);
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t n = 0; n < batch; ++n) sequence(d, n, h, c, forward, recall, backward);
    const Vector* results[] = {&dx_, &dw_, &dr_, &db_, &dh_, &dc_};
    for (size_t i = 0; i < std::min<size_t>(args.out.size(), has_cell ? 6 : 5); ++i)
      write_dense(args.out[i], *results[i]);
  }

 private:
  void sequence(int64_t d, int64_t n, const Vector& h0, const Vector& c0, const CellFn& forward,
                const CellFn& recall, const CellFn& backward) {
    const int64_t state = state_at(d, n), length = length_of(n);
    const size_t size = hidden;
    const auto part = [&](const Vector& all) {
      return Vector(all.begin() + state, all.begin() + state + hidden);
    };
    std::vector<Step<Unit>> all(length);
    Vector h = part(h0), c = part(c0);
    for (int64_t t = 0; t < length; ++t) {
      Step<Unit>& step = all[t];
      step.direction = d;
      step.x_at = x_at(n, place(d, t, length));
      step.y_at = y_at(d, n, place(d, t, length));
      step.h = h;
      step.c = c;
      step.next_h = step.next_c = Vector(size);
      step.units.resize(size);
      if (reserve_.empty()) {
        forward(step);
      } else {
        read_reserve(step, reserve_.data() + reserve_at(d, n, place(d, t, length)));
        recall(step);
      }
      h = step.next_h;
      c = step.next_c;
    }
    Vector dh = part(dh_), dc = part(dc_);
    for (size_t t = all.size(); t-- > 0;) {
      Step<Unit>& step = all[t];
      step.dh = dh;
      step.dc = dc;
      for (size_t u = 0; u < size; ++u) step.dh[u] += dy_[static_cast<size_t>(step.y_at) + u];
      backward(step);
      dh = step.dh;
      dc = step.dc;
    }
    std::copy(dh.begin(), dh.end(), dh_.begin() + state);
    std::copy(dc.begin(), dc.end(), dc_.begin() + state);
  }

  void read_reserve(Step<Unit>& step, const double* from) const {
    const auto part = [&](int64_t which, int64_t u) { return from[which * hidden + u]; };
    for (int64_t u = 0; u < hidden; ++u) {
      step.h[u] = part(parts.state(), u);
      if (gates == 4) step.c[u] = part(parts.extra(), u);
      if (gates == 3) step.recurrent.push_back(part(parts.extra(), u));
      // Slopes that need the sums themselves have them; that of relu sees the sign.
      for (int64_t gate = 0; gate < gates; ++gate) {
        step.units[u].y[gate] = part(order[gate], u);
        step.units[u].z[gate] = part((parts.sums ? parts.sum() : 0) + order[gate], u);
      }
    }
  }

  Vector dx_, dw_, dr_, db_, dy_, dh_, dc_, reserve_;
};

}  // namespace

REFERENCE(lstm_gradient) {
  using Unit = LstmUnit<double>;
  BackwardLayer<Unit> layer(args, 4, 8);
  const Peepholes peepholes(layer);
  Vector dpeepholes(layer.directions * 3 * layer.hidden);
  const auto forward = [&](Step<Unit>& step) {
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const size_t at = u;
      Unit& unit = step.units[at];
      double peephole[3];
      unit.c = step.c[at];
      unit.peephole = peepholes.of(step.direction, u, peephole);
      unit.input_forget = args.attrs.b("input_forget");
      for (size_t gate = 0; gate < 4; ++gate)
        unit.z[gate] = layer.from_x(step.direction, gate, u, step.x_at) +
                       layer.from_h(step.direction, gate, u, step.h);
      unit.forward(layer.act(step.direction));
      step.next_c[at] = unit.next_c;
      step.next_h[at] = unit.next_h;
    }
  };
  const auto recall = [&](Step<Unit>& step) {
    for (int64_t u = 0; u < layer.hidden; ++u) {
      Unit& unit = step.units[u];
      unit.c = step.c[u];
      unit.input_forget = args.attrs.b("input_forget");
      unit.recall(layer.act(step.direction));
    }
  };
  const auto backward = [&](Step<Unit>& step) {
    Vector dh(step.dh.size()), dc(step.dc.size());
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const size_t at = u;
      double peephole[3];
      step.units[at].peephole = peepholes.of(step.direction, u, peephole);
      const Unit::Back back =
          step.units[at].backward(layer.act(step.direction), step.dh[at], step.dc[at]);
      dc[at] = back.dc;
      for (size_t gate = 0; gate < 3; ++gate)
        dpeepholes[peepholes.at(step.direction, gate, u)] += back.dpeephole[gate];
      for (size_t gate = 0; gate < 4; ++gate) {
        layer.back_x(step, gate, u, back.dz[gate]);
        layer.back_h(step, step.h, gate, u, back.dz[gate], dh);
      }
    }
    step.dh = std::move(dh);
    step.dc = std::move(dc);
  };
  layer.run(forward, recall, backward, true);
  if (args.out.size() > 6) write_dense(args.out[6], dpeepholes);
}

REFERENCE(gru_gradient) {
  using Unit = GruUnit<double>;
  BackwardLayer<Unit> layer(args, 3, 6);
  const bool linear = args.attrs.b("linear_before_reset");
  const auto forward = [&](Step<Unit>& step) {
    for (int64_t u = 0; u < layer.hidden; ++u) {
      Unit& unit = step.units[u];
      unit.h = step.h[u];
      unit.linear_before_reset = linear;
      for (size_t gate = 0; gate < 3; ++gate)
        unit.z[gate] = layer.from_x(step.direction, gate, u, step.x_at) +
                       (gate == Unit::kNew ? 0 : layer.from_h(step.direction, gate, u, step.h));
    }
    for (Unit& unit : step.units) step.scaled.push_back(unit.scaled(layer.act(step.direction)));
    for (int64_t u = 0; u < layer.hidden; ++u) {
      Unit& unit = step.units[u];
      step.recurrent.push_back(layer.from_h(step.direction, Unit::kNew, u, step.scaled));
      unit.forward(layer.act(step.direction), step.recurrent.back());
      step.next_h[u] = unit.next_h;
    }
  };
  const auto recall = [&](Step<Unit>& step) {
    step.scaled = linear ? step.h : step.recurrent;
    for (int64_t u = 0; u < layer.hidden; ++u) {
      step.units[u].h = step.h[u];
      step.units[u].linear_before_reset = linear;
    }
  };
  const auto backward = [&](Step<Unit>& step) {
    const RecurrentActivations<double> act = layer.act(step.direction);
    Vector dh(step.dh.size()), dscaled(step.dh.size()), dnew;
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const size_t at = u;
      const Unit& unit = step.units[at];
      const Unit::Back back = unit.backward(act, step.dh[at]);
      dnew.push_back(back.dz[Unit::kNew]);
      dh[at] += back.dh;
      layer.back_x(step, Unit::kNew, u, back.dz[Unit::kNew]);
      layer.back_h(step, step.scaled, Unit::kNew, u, back.drecurrent, linear ? dh : dscaled);
      layer.back_x(step, Unit::kUpdate, u, back.dz[Unit::kUpdate]);
      layer.back_h(step, step.h, Unit::kUpdate, u, back.dz[Unit::kUpdate], dh);
    }
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const size_t at = u;
      const double dz =
          step.units[at].reset(act, dnew[at], step.recurrent[at], dscaled[at], dh[at]);
      layer.back_x(step, Unit::kReset, u, dz);
      layer.back_h(step, step.h, Unit::kReset, u, dz, dh);
    }
    step.dh = std::move(dh);
  };
  layer.run(forward, recall, backward, false);
}

REFERENCE(rnn_gradient) {
  using Unit = RnnUnit<double>;
  BackwardLayer<Unit> layer(args, 1, 6);
  const auto forward = [&](Step<Unit>& step) {
    for (int64_t u = 0; u < layer.hidden; ++u) {
      Unit& unit = step.units[u];
      unit.z[0] = layer.from_x(step.direction, 0, u, step.x_at) +
                  layer.from_h(step.direction, 0, u, step.h);
      unit.forward(layer.act(step.direction));
      step.next_h[u] = unit.y[0];
    }
  };
  const auto backward = [&](Step<Unit>& step) {
    Vector dh(step.dh.size());
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const double dz = step.units[u].backward(layer.act(step.direction), step.dh[u]);
      layer.back_x(step, 0, u, dz);
      layer.back_h(step, step.h, 0, u, dz, dh);
    }
    step.dh = std::move(dh);
  };
  layer.run(
      forward, [](Step<Unit>&) {}, backward, false);
}

}  // namespace anymps
