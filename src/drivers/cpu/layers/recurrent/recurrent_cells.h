// SPDX-License-Identifier: Apache-2.0
// What the cells of recurrent layers do to one sequence in one step, forward and back: all units of
// the state. Plain loops over the units of semantics/recurrent.h serve every layer; vector code
// those in f32 with the usual activations, without clipping, peepholes and input_forget.
#pragma once

#include "semantics/recurrent.h"

namespace anymps::cpu {

// Pointers to as many elements as there are units; gates in the order of LstmUnit and GruUnit.
template <typename T>
struct CellRow {
  const T *z[4] = {}, *h[4] = {};  // what comes from x and from the state, without biases
  const T* bias[4] = {};           // sums of both; of the new gate of a gru that of w
  const T* new_bias = nullptr;     // that of r for the new gate
  T* y[4] = {};                    // what the gates give; may be z
  T* sums[4] = {};                 // what they saw; null: not asked for
  T* recurrent = nullptr;          // gru: what comes from the state for the new gate, may be h
  T *c = nullptr, *state = nullptr;
};

template <typename T>
struct CellBack {
  const T *y[4] = {}, *z[4] = {};  // what the gates gave and saw; z may be null if slopes need y
  const T *c = nullptr, *recurrent = nullptr, *h = nullptr;  // before the step
  T* dz[4] = {};
  T* dnew = nullptr;  // gru: of what comes from the state for the new gate
  T* dh = nullptr;    // of the state; of a gru then what goes on to the one before, so far
  T* dc = nullptr;    // of the cell after the step, then before it
};

// How a layer's units are set beyond their numbers.
template <typename T>
struct CellOptions {
  int64_t units = 0;
  RecurrentActivations<T> act;
  const T* peephole = nullptr;  // [3, units]
  bool input_forget = false, linear = false;
};

template <typename T, typename Unit>
void cell_sums(Unit& unit, const CellRow<T>& r, int64_t gate, int64_t u) {
  unit.z[gate] = r.z[gate][u] + r.h[gate][u] + r.bias[gate][u];
}
template <typename T, typename Unit>
void keep_gate(const Unit& unit, const CellRow<T>& r, int64_t gate, int64_t u) {
  r.y[gate][u] = unit.y[gate];
  if (r.sums[gate]) r.sums[gate][u] = unit.z[gate];
}
template <typename T>
void set_peephole(LstmUnit<T>& unit, const CellOptions<T>& o, int64_t u, T (&peephole)[3]) {
  unit.input_forget = o.input_forget;
  if (!o.peephole) return;
  for (int64_t gate = 0; gate < 3; ++gate) peephole[gate] = o.peephole[gate * o.units + u];
  unit.peephole = peephole;
}

template <typename T>
void lstm_cells_plain(const CellRow<T>& r, const CellOptions<T>& o) {
  T peephole[3];
  for (int64_t u = 0; u < o.units; ++u) {
    LstmUnit<T> unit{.c = r.c[u]};
    set_peephole(unit, o, u, peephole);
    for (int64_t gate = 0; gate < 4; ++gate) cell_sums(unit, r, gate, u);
    unit.forward(o.act);
    for (int64_t gate = 0; gate < 4; ++gate) keep_gate(unit, r, gate, u);
    r.c[u] = unit.next_c;
    r.state[u] = unit.next_h;
  }
}

// The reset gate first, and what the new gate multiplies, if it is not the state itself.
template <typename T>
void gru_reset_plain(const CellRow<T>& r, T* scaled, const CellOptions<T>& o) {
  using Unit = GruUnit<T>;
  for (int64_t u = 0; u < o.units; ++u) {
    Unit unit{.h = r.state[u], .linear_before_reset = o.linear};
    cell_sums(unit, r, Unit::kReset, u);
    const T product = unit.scaled(o.act);
    if (scaled) scaled[u] = product;
    keep_gate(unit, r, Unit::kReset, u);
  }
}
template <typename T>
void gru_update_plain(const CellRow<T>& r, const CellOptions<T>& o) {
  using Unit = GruUnit<T>;
  for (int64_t u = 0; u < o.units; ++u) {
    Unit unit{.h = r.state[u], .linear_before_reset = o.linear};
    unit.y[Unit::kReset] = r.y[Unit::kReset][u];
    cell_sums(unit, r, Unit::kUpdate, u);
    unit.z[Unit::kNew] = r.z[Unit::kNew][u] + r.bias[Unit::kNew][u];
    const T recurrent = r.h[Unit::kNew][u] + r.new_bias[u];
    unit.forward(o.act, recurrent);
    r.recurrent[u] = recurrent;
    keep_gate(unit, r, Unit::kUpdate, u);
    keep_gate(unit, r, Unit::kNew, u);
    r.state[u] = unit.next_h;
  }
}

template <typename T>
void rnn_cells_plain(const CellRow<T>& r, const CellOptions<T>& o) {
  for (int64_t u = 0; u < o.units; ++u) {
    RnnUnit<T> unit;
    cell_sums(unit, r, 0, u);
    unit.forward(o.act);
    keep_gate(unit, r, 0, u);
    r.state[u] = unit.y[0];
  }
}

template <typename T, typename Unit>
void known_gates(Unit& unit, const CellBack<T>& b, int64_t gates, int64_t u) {
  for (int64_t gate = 0; gate < gates; ++gate) {
    unit.y[gate] = b.y[gate][u];
    unit.z[gate] = b.z[gate][u];
  }
}

template <typename T>
void lstm_back_plain(const CellBack<T>& b, const CellOptions<T>& o) {
  T peephole[3];
  for (int64_t u = 0; u < o.units; ++u) {
    LstmUnit<T> unit{.c = b.c[u]};
    set_peephole(unit, o, u, peephole);
    known_gates(unit, b, 4, u);
    unit.recall(o.act);
    const auto back = unit.backward(o.act, b.dh[u], b.dc[u]);
    for (int64_t gate = 0; gate < 4; ++gate) b.dz[gate][u] = back.dz[gate];
    b.dc[u] = back.dc;
  }
}

template <typename T>
GruUnit<T> known_gru(const CellBack<T>& b, const CellOptions<T>& o, int64_t u) {
  GruUnit<T> unit{.h = b.h[u], .linear_before_reset = o.linear};
  known_gates(unit, b, 3, u);
  return unit;
}
template <typename T>
void gru_update_back_plain(const CellBack<T>& b, const CellOptions<T>& o) {
  using Unit = GruUnit<T>;
  for (int64_t u = 0; u < o.units; ++u) {
    const auto back = known_gru(b, o, u).backward(o.act, b.dh[u]);
    b.dz[Unit::kNew][u] = back.dz[Unit::kNew];
    b.dz[Unit::kUpdate][u] = back.dz[Unit::kUpdate];
    b.dnew[u] = back.drecurrent;
    b.dh[u] = back.dh;
  }
}
// `dscaled`: of what the new gate multiplies; null where it is the state itself.
template <typename T>
void gru_reset_back_plain(const CellBack<T>& b, const T* dscaled, const CellOptions<T>& o) {
  using Unit = GruUnit<T>;
  for (int64_t u = 0; u < o.units; ++u)
    b.dz[Unit::kReset][u] = known_gru(b, o, u).reset(o.act, b.dz[Unit::kNew][u], b.recurrent[u],
                                                     dscaled ? dscaled[u] : T(0), b.dh[u]);
}

template <typename T>
void rnn_back_plain(const CellBack<T>& b, const CellOptions<T>& o) {
  for (int64_t u = 0; u < o.units; ++u) {
    RnnUnit<T> unit;
    known_gates(unit, b, 1, u);
    b.dz[0][u] = unit.backward(o.act, b.dh[u]);
  }
}

// The vector code. A layer without the reserve may pass y and recurrent as z and h.
void lstm_cells(const CellRow<float>& r, int64_t units);
void lstm_back(const CellBack<float>& b, int64_t units);
void gru_reset(const CellRow<float>& r, float* scaled, int64_t units);
void gru_update(const CellRow<float>& r, bool linear, int64_t units);
void gru_update_back(const CellBack<float>& b, bool linear, int64_t units);
void gru_reset_back(const CellBack<float>& b, const float* dscaled, int64_t units);
void rnn_cells(const CellRow<float>& r, CellActivation::Kind activation, int64_t units);
void rnn_back(const CellBack<float>& b, CellActivation::Kind activation, int64_t units);

}  // namespace anymps::cpu
