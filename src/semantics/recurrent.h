// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: where their parts lie, and what one unit of a cell does in one step, forward
// and back. Kernels differ in how they make the sums that go in here and in the type T of their
// numbers. `act` is a RecurrentActivations<T>, whose first activation is that of the gates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "semantics/cell_activation.h"

namespace anymps {

// x is [steps, batch, width], y [steps, directions, batch, hidden] and a state [directions, batch,
// hidden]; with batch_first the axis of the batch is the first in all three.
struct RecurrentExtents {
  int64_t gates = 1, hidden = 1, steps = 1, batch = 1, width = 1, directions = 1;
  bool batch_first = false, reverse = false;
  // Which block of rows of the weights and biases is that of a gate, in the order of a unit's.
  int64_t order[4] = {0, 1, 2, 3};

  // Which row of x is that of a sequence at a place in time; the first element of its part.
  int64_t row_of(int64_t n, int64_t place) const {
    return batch_first ? n * steps + place : place * batch + n;
  }
  int64_t x_at(int64_t n, int64_t place) const { return row_of(n, place) * width; }
  int64_t y_at(int64_t d, int64_t n, int64_t place) const {
    return (batch_first ? (n * steps + place) * directions + d
                        : (place * directions + d) * batch + n) *
           hidden;
  }
  int64_t state_at(int64_t d, int64_t n) const {
    return (batch_first ? n * directions + d : d * batch + n) * hidden;
  }
  // Where step t of a sequence of this length lies in time.
  int64_t place(int64_t d, int64_t t, int64_t length) const {
    return d == 1 || reverse ? length - 1 - t : t;
  }
};

// The reserve: what the gradient of a step needs, in parts of `hidden` elements. What the gates
// gave, in the order of the weights; of lstm the cell before the step; of gru what comes from the
// state for the new gate, or the scaled state that it multiplies; the state before the step; and,
// where slopes need it, what the gates saw.
struct RecurrentParts {
  int64_t gates = 1;
  bool sums = false;  // what the gates saw too

  int64_t extra() const { return gates; }  // not of rnn
  int64_t state() const { return gates > 1 ? gates + 1 : gates; }
  int64_t sum() const { return state() + 1; }
  int64_t count() const { return sum() + (sums ? gates : 0); }
};

// The activations of one direction's cell, on what is clipped first; no clip: 0. They are computed
// in double, so that a unit's step is the same wherever it is made again.
template <typename T>
struct RecurrentActivations {
  const CellActivation* activations = nullptr;
  T clip = 0;

  T operator()(size_t which, T z) const {
    const T seen = clip > 0 ? std::clamp(z, -clip, clip) : z;
    return static_cast<T>(activations[which](static_cast<double>(seen)));
  }
  // How activation `which`, which gave y for z, moves with z.
  T slope(size_t which, T z, T y) const {
    if (clip > 0 && std::abs(z) > clip) return 0;
    return static_cast<T>(activations[which].slope(static_cast<double>(z), static_cast<double>(y)));
  }
};

template <typename T>
struct LstmUnit {
  enum Gate { kInput, kOutput, kForget, kCell };
  enum Activation { kGates, kCandidate, kState };

  T z[4] = {};  // what the activations see, by gate: sums of what comes from x and from the state
  T y[4] = {};  // what they give; set by forward, as what follows
  T c = 0, next_c = 0, state = 0, next_h = 0;  // state: what the output gate lets through
  const T* peephole = nullptr;                 // of the first three gates; null: none
  bool input_forget = false;

  // Also adds to z what its gates see of the cell.
  template <typename Act>
  void forward(const Act& act) {
    if (peephole) {
      z[kInput] += peephole[kInput] * c;
      z[kForget] += peephole[kForget] * c;
    }
    y[kInput] = act(kGates, z[kInput]);
    y[kForget] = input_forget ? 1 - y[kInput] : act(kGates, z[kForget]);
    y[kCell] = act(kCandidate, z[kCell]);
    next_c = y[kForget] * c + y[kInput] * y[kCell];
    if (peephole) z[kOutput] += peephole[kOutput] * next_c;
    y[kOutput] = act(kGates, z[kOutput]);
    state = act(kState, next_c);
    next_h = y[kOutput] * state;
  }

  // What forward would set, of z, y and c that are known.
  template <typename Act>
  void recall(const Act& act) {
    next_c = y[kForget] * c + y[kInput] * y[kCell];
    state = act(kState, next_c);
    next_h = y[kOutput] * state;
  }

  struct Back {
    T dz[4] = {}, dc = 0, dpeephole[3] = {};
  };
  // From the gradients of next_h and next_c, after forward.
  template <typename Act>
  Back backward(const Act& act, T dh, T dnext_c) const {
    Back back;
    const auto peek = [&](Gate gate, T seen) {  // the gradient of what the gate sees
      back.dpeephole[gate] = back.dz[gate] * seen;
      return peephole ? back.dz[gate] * peephole[gate] : T(0);
    };
    back.dz[kOutput] = dh * state * act.slope(kGates, z[kOutput], y[kOutput]);
    const T dc =
        dnext_c + dh * y[kOutput] * act.slope(kState, next_c, state) + peek(kOutput, next_c);
    back.dz[kInput] =
        dc * (input_forget ? y[kCell] - c : y[kCell]) * act.slope(kGates, z[kInput], y[kInput]);
    if (!input_forget) back.dz[kForget] = dc * c * act.slope(kGates, z[kForget], y[kForget]);
    back.dz[kCell] = dc * y[kInput] * act.slope(kCandidate, z[kCell], y[kCell]);
    back.dc = dc * y[kForget] + peek(kInput, c) + peek(kForget, c);
    return back;
  }
};

template <typename T>
struct GruUnit {
  enum Gate { kUpdate, kReset, kNew };
  enum Activation { kGates, kCandidate };

  T z[3] = {};  // as of an lstm, but kNew has at first only what comes from x
  T y[3] = {};  // what the activations give; that of kReset is set by scaled, the others by forward
  T h = 0, next_h = 0;
  bool linear_before_reset = false;

  // What row kNew multiplies, one for each unit of the state.
  template <typename Act>
  T scaled(const Act& act) {
    y[kReset] = act(kGates, z[kReset]);
    return linear_before_reset ? h : y[kReset] * h;
  }
  // `recurrent`: what comes from scaled(). Adds it to z.
  template <typename Act>
  void forward(const Act& act, T recurrent) {
    z[kNew] += linear_before_reset ? y[kReset] * recurrent : recurrent;
    y[kUpdate] = act(kGates, z[kUpdate]);
    y[kNew] = act(kCandidate, z[kNew]);
    next_h = (1 - y[kUpdate]) * y[kNew] + y[kUpdate] * h;
  }

  struct Back {
    T dz[3] = {};  // kReset: from reset()
    T drecurrent = 0, dh = 0;
  };
  // From the gradient of next_h, after forward.
  template <typename Act>
  Back backward(const Act& act, T dnext_h) const {
    Back back;
    back.dz[kNew] = dnext_h * (1 - y[kUpdate]) * act.slope(kCandidate, z[kNew], y[kNew]);
    back.dz[kUpdate] = dnext_h * (h - y[kNew]) * act.slope(kGates, z[kUpdate], y[kUpdate]);
    back.drecurrent = linear_before_reset ? back.dz[kNew] * y[kReset] : back.dz[kNew];
    back.dh = dnext_h * y[kUpdate];
    return back;
  }
  // The gradient of z of the reset gate; dnew is that of kNew. The gate scales `recurrent`, or the
  // state before the product, whose gradient is then dscaled and of which a part goes on to dh.
  template <typename Act>
  T reset(const Act& act, T dnew, T recurrent, T dscaled, T& dh) const {
    if (!linear_before_reset) dh += dscaled * y[kReset];
    const T dopen = linear_before_reset ? dnew * recurrent : dscaled * h;
    return dopen * act.slope(kGates, z[kReset], y[kReset]);
  }
};

template <typename T>
struct RnnUnit {
  T z[1] = {}, y[1] = {};  // y: the next state

  template <typename Act>
  void forward(const Act& act) {
    y[0] = act(0, z[0]);
  }
  // The gradient of z, from that of the next state.
  template <typename Act>
  T backward(const Act& act, T dh) const {
    return dh * act.slope(0, z[0], y[0]);
  }
};

}  // namespace anymps
