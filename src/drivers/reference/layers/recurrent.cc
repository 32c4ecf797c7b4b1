// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and the simple RNN by their definition, one step of one sequence at a time. The three
// differ only in their cells; the walk over directions, sequences and steps is shared.
#include <algorithm>
#include <functional>

#include "drivers/reference/layers/recurrent_layer.h"

namespace anymps {

namespace {

using Vector = RecurrentVector;

struct SequenceState {
  int64_t direction = 0, x_at = 0;  // the first element of this step's x
  Vector h, c;
  double* reserve = nullptr;  // null: not asked for

  void keep(const RecurrentInputs& layer, int64_t part, int64_t unit, double value) const {
    if (reserve) reserve[part * layer.hidden + unit] = value;
  }
  // What the gates of a unit gave, and saw.
  template <typename Unit>
  void keep_gates(const RecurrentInputs& layer, int64_t unit, const Unit& cell) const {
    for (int64_t gate = 0; gate < layer.gates; ++gate) {
      keep(layer, layer.order[gate], unit, cell.y[gate]);
      if (layer.parts.sums) keep(layer, layer.parts.sum() + layer.order[gate], unit, cell.z[gate]);
    }
  }
};

// Runs `step`, which replaces the states of a sequence, over every sequence.
void run_layer(const RecurrentInputs& layer, const std::function<void(SequenceState&)>& step) {
  const ReferenceArgs& args = layer.args;
  const size_t outputs = args.op.main_outputs();
  Vector y(args.out[0].count());
  Vector reserve(args.out.size() > outputs ? args.out[outputs].count() : 0);
  Vector h = read_or_zero(args, 5, layer.states());
  Vector c = args.op.name == "lstm" ? read_or_zero(args, 6, layer.states()) : Vector(h.size(), 0.0);
  for (int64_t d = 0; d < layer.directions; ++d)
    for (int64_t n = 0; n < layer.batch; ++n) {
      const int64_t length = layer.length_of(n), state = layer.state_at(d, n);
      const auto part = [&](const Vector& all) {
        return Vector(all.begin() + state, all.begin() + state + layer.hidden);
      };
      SequenceState sequence{.direction = d, .h = part(h), .c = part(c)};
      for (int64_t t = 0; t < length; ++t) {
        const int64_t place = layer.place(d, t, length);
        sequence.x_at = layer.x_at(n, place);
        if (!reserve.empty()) sequence.reserve = reserve.data() + layer.reserve_at(d, n, place);
        for (int64_t u = 0; u < layer.hidden; ++u)
          sequence.keep(layer, layer.parts.state(), u, sequence.h[u]);
        step(sequence);
        std::copy(sequence.h.begin(), sequence.h.end(), y.begin() + layer.y_at(d, n, place));
      }
      std::copy(sequence.h.begin(), sequence.h.end(), h.begin() + state);
      std::copy(sequence.c.begin(), sequence.c.end(), c.begin() + state);
    }
  write_dense(args.out[0], y);
  if (args.out.size() > 1) write_dense(args.out[1], h);
  if (args.out.size() > 2 && outputs > 2) write_dense(args.out[2], c);
  if (args.out.size() > outputs) write_dense(args.out[outputs], reserve);
}

}  // namespace

REFERENCE(lstm) {
  RecurrentInputs layer(args, 4);
  const bool rounds = args.attrs.b("dynamic_bytes");
  if (rounds) layer.round_x();
  const Peepholes peepholes(layer);
  run_layer(layer, [&](SequenceState& s) {
    Vector h(s.h.size()), c(s.c.size());
    if (rounds) round_state(s.h);
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const size_t at = u;
      double peephole[3];
      LstmUnit<double> unit{.c = s.c[at],
                            .peephole = peepholes.of(s.direction, u, peephole),
                            .input_forget = args.attrs.b("input_forget")};
      for (size_t gate = 0; gate < 4; ++gate)
        unit.z[gate] =
            layer.from_x(s.direction, gate, u, s.x_at) + layer.from_h(s.direction, gate, u, s.h);
      unit.forward(layer.act(s.direction));
      s.keep_gates(layer, u, unit);
      s.keep(layer, layer.parts.extra(), u, unit.c);
      h[at] = unit.next_h;
      c[at] = unit.next_c;
    }
    s.h = std::move(h);
    s.c = std::move(c);
  });
}

REFERENCE(gru) {
  using Unit = GruUnit<double>;
  const RecurrentInputs layer(args, 3);
  run_layer(layer, [&](SequenceState& s) {
    const RecurrentActivations<double> act = layer.act(s.direction);
    std::vector<Unit> units(s.h.size());
    Vector scaled(s.h.size());
    for (int64_t u = 0; u < layer.hidden; ++u) {
      const size_t at = u;
      Unit& unit = units[at];
      unit.h = s.h[at];
      unit.linear_before_reset = args.attrs.b("linear_before_reset");
      for (size_t gate = 0; gate < 3; ++gate)
        unit.z[gate] = layer.from_x(s.direction, gate, u, s.x_at) +
                       (gate == Unit::kNew ? 0 : layer.from_h(s.direction, gate, u, s.h));
      scaled[at] = unit.scaled(act);
    }
    for (int64_t u = 0; u < layer.hidden; ++u) {
      Unit& unit = units[u];
      const double recurrent = layer.from_h(s.direction, Unit::kNew, u, scaled);
      unit.forward(act, recurrent);
      s.keep_gates(layer, u, unit);
      s.keep(layer, layer.parts.extra(), u, unit.linear_before_reset ? recurrent : scaled[u]);
      s.h[u] = unit.next_h;
    }
  });
}

REFERENCE(rnn) {
  const RecurrentInputs layer(args, 1);
  run_layer(layer, [&](SequenceState& s) {
    Vector h(s.h.size());
    for (int64_t u = 0; u < layer.hidden; ++u) {
      RnnUnit<double> unit{
          {layer.from_x(s.direction, 0, u, s.x_at) + layer.from_h(s.direction, 0, u, s.h)}};
      unit.forward(layer.act(s.direction));
      s.keep_gates(layer, u, unit);
      h[u] = unit.y[0];
    }
    s.h = std::move(h);
  });
}

}  // namespace anymps
