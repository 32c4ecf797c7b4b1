// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and the simple RNN by their definition, one step of one sequence at a time. The three
// differ only in their cells; the walk over directions, sequences and steps is shared.
#include <algorithm>
#include <cmath>
#include <functional>

#include "drivers/reference/dense.h"
#include "ops/layers/recurrent.h"

namespace anymps {

namespace {

using Vector = std::vector<double>;

class Recurrent {
 public:
  Recurrent(const ReferenceArgs& args, int64_t gates)
      : args_(args),
        gates_(gates),
        hidden_(args.attrs.i("hidden_size")),
        batch_first_(args.attrs.i("layout") == 1),
        steps_(args.in[0].extent(batch_first_ ? 1 : 0)),
        batch_(args.in[0].extent(batch_first_ ? 0 : 1)),
        width_(args.in[0].extent(2)),
        directions_(args.in[1].extent(0)),
        clip_(args.attrs.f("clip")),
        x_(read_dense<double>(args.in[0])),
        w_(read_dense<double>(args.in[1])),
        r_(read_dense<double>(args.in[2])),
        b_(read_or_zero(args, 3, directions_ * 2 * gates * hidden_)),
        y_(static_cast<size_t>(args.out[0].count())) {}

  struct Cell {
    int64_t direction = 0;
    const double* x = nullptr;
    Vector h, c;
  };

  // x of this step, or a state, times row (gate, unit) of its weights.
  double from_x(const Cell& cell, int64_t gate, int64_t unit) const {
    return dot(cell.x, w_.data() + row(cell.direction, gate, unit) * width_, width_);
  }
  double from_h(const Cell& cell, const Vector& h, int64_t gate, int64_t unit) const {
    return dot(h.data(), r_.data() + row(cell.direction, gate, unit) * hidden_, hidden_);
  }
  double bias_x(const Cell& cell, int64_t gate, int64_t unit) const {
    return b_[static_cast<size_t>(cell.direction * 2 * gates_ * hidden_ + gate * hidden_ + unit)];
  }
  double bias_h(const Cell& cell, int64_t gate, int64_t unit) const {
    return bias_x(cell, gate + gates_, unit);
  }
  double all(const Cell& cell, int64_t gate, int64_t unit) const {
    return from_x(cell, gate, unit) + from_h(cell, cell.h, gate, unit) + bias_x(cell, gate, unit) +
           bias_h(cell, gate, unit);
  }
  double clip(double x) const { return clip_ > 0 ? std::clamp(x, -clip_, clip_) : x; }
  int64_t hidden() const { return hidden_; }
  int64_t directions() const { return directions_; }

  // Runs `step`, which replaces the states of a cell, over every sequence.
  void run(const std::function<void(Cell&)>& step) {
    const bool has_cell = args_.op.name == "lstm";
    const int64_t states = directions_ * batch_ * hidden_;
    Vector h = read_or_zero(args_, 5, states);
    Vector c = has_cell ? read_or_zero(args_, 6, states) : Vector(static_cast<size_t>(states), 0.0);
    for (int64_t direction = 0; direction < directions_; ++direction) {
      const bool backwards = direction == 1 || args_.attrs.s("direction") == "reverse";
      for (int64_t n = 0; n < batch_; ++n) {
        const int64_t length = length_of(n);
        const auto state = static_cast<std::ptrdiff_t>(
            (batch_first_ ? n * directions_ + direction : direction * batch_ + n) * hidden_);
        Cell cell{direction, nullptr, Vector(h.begin() + state, h.begin() + state + hidden_),
                  Vector(c.begin() + state, c.begin() + state + hidden_)};
        for (int64_t t = 0; t < length; ++t) {
          const int64_t at = backwards ? length - 1 - t : t;
          cell.x = x_.data() + (batch_first_ ? n * steps_ + at : at * batch_ + n) * width_;
          step(cell);
          const int64_t place = batch_first_ ? (n * steps_ + at) * directions_ + direction
                                             : (at * directions_ + direction) * batch_ + n;
          std::copy(cell.h.begin(), cell.h.end(), y_.begin() + place * hidden_);
        }
        std::copy(cell.h.begin(), cell.h.end(), h.begin() + state);
        std::copy(cell.c.begin(), cell.c.end(), c.begin() + state);
      }
    }
    write_dense(args_.out[0], y_);
    if (args_.out.size() > 1) write_dense(args_.out[1], h);
    if (args_.out.size() > 2) write_dense(args_.out[2], c);
  }

 private:
  static double dot(const double* a, const double* b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
  int64_t row(int64_t direction, int64_t gate, int64_t unit) const {
    return (direction * gates_ + gate) * hidden_ + unit;
  }
  int64_t length_of(int64_t n) const {
    if (!args_.has(4)) return steps_;
    const int64_t length = load_int(args_.in[4], n * args_.in[4].stride(0));
    require(length >= 0 && length <= steps_, "[{}] seq_lens has the entry {}, must be 0 to {}",
            args_.op.name, length, steps_);
    return length;
  }

  const ReferenceArgs& args_;
  int64_t gates_, hidden_;
  bool batch_first_;
  int64_t steps_, batch_, width_, directions_;
  double clip_;
  Vector x_, w_, r_, b_, y_;
};

}  // namespace

REFERENCE(lstm) {
  enum Gate { kInput, kOutput, kForget, kCell };
  Recurrent layer(args, 4);
  const int64_t hidden = layer.hidden();
  const std::vector<CellActivation> activations =
      cell_activations(args.attrs, layer.directions(), usual_activations(args.attrs, 4));
  const bool input_forget = args.attrs.b("input_forget");
  const Vector peepholes = read_or_zero(args, 7, layer.directions() * 3 * hidden);
  layer.run([&](Recurrent::Cell& cell) {
    const auto peephole = [&](int64_t gate, int64_t unit) {
      return peepholes[static_cast<size_t>((cell.direction * 3 + gate) * hidden + unit)];
    };
    Vector h(cell.h.size()), c(cell.c.size());
    const CellActivation* act = &activations[static_cast<size_t>(cell.direction * 3)];
    for (int64_t u = 0; u < hidden; ++u) {
      const auto at = static_cast<size_t>(u);
      const auto gate = [&](Gate which, double state) {
        return act[0](layer.clip(layer.all(cell, which, u) + peephole(which, u) * state));
      };
      const double candidate = act[1](layer.clip(layer.all(cell, kCell, u)));
      const double input = gate(kInput, cell.c[at]);
      const double forget = input_forget ? 1 - input : gate(kForget, cell.c[at]);
      c[at] = forget * cell.c[at] + input * candidate;
      h[at] = gate(kOutput, c[at]) * act[2](layer.clip(c[at]));
    }
    cell.h = std::move(h);
    cell.c = std::move(c);
  });
}

REFERENCE(gru) {
  enum Gate { kUpdate, kReset, kNew };
  Recurrent layer(args, 3);
  const bool linear_before_reset = args.attrs.b("linear_before_reset");
  const std::vector<CellActivation> activations =
      cell_activations(args.attrs, layer.directions(), usual_activations(args.attrs, 3));
  layer.run([&](Recurrent::Cell& cell) {
    Vector h(cell.h.size()), reset(cell.h.size()), scaled(cell.h.size());
    const CellActivation* act = &activations[static_cast<size_t>(cell.direction * 2)];
    for (int64_t u = 0; u < layer.hidden(); ++u) {
      const auto at = static_cast<size_t>(u);
      reset[at] = act[0](layer.clip(layer.all(cell, kReset, u)));
      scaled[at] = reset[at] * cell.h[at];
    }
    for (int64_t u = 0; u < layer.hidden(); ++u) {
      const auto at = static_cast<size_t>(u);
      const double update = act[0](layer.clip(layer.all(cell, kUpdate, u)));
      const double recurrent =
          linear_before_reset
              ? reset[at] * (layer.from_h(cell, cell.h, kNew, u) + layer.bias_h(cell, kNew, u))
              : layer.from_h(cell, scaled, kNew, u) + layer.bias_h(cell, kNew, u);
      const double candidate =
          act[1](layer.clip(layer.from_x(cell, kNew, u) + layer.bias_x(cell, kNew, u) + recurrent));
      h[at] = (1 - update) * candidate + update * cell.h[at];
    }
    cell.h = std::move(h);
  });
}

REFERENCE(rnn) {
  Recurrent layer(args, 1);
  const std::vector<CellActivation> activations =
      cell_activations(args.attrs, layer.directions(), usual_activations(args.attrs, 1));
  layer.run([&](Recurrent::Cell& cell) {
    Vector h(cell.h.size());
    for (int64_t u = 0; u < layer.hidden(); ++u)
      h[static_cast<size_t>(u)] =
          activations[static_cast<size_t>(cell.direction)](layer.clip(layer.all(cell, 0, u)));
    cell.h = std::move(h);
  });
}

}  // namespace anymps
