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

  // The first element of a sequence's part.
  int64_t x_at(int64_t n, int64_t place) const {
    return (batch_first ? n * steps + place : place * batch + n) * width;
  }
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
  T c = 0, next_c = 0, next_h = 0;
  const T* peephole = nullptr;  // of the first three gates; null: none
  bool input_forget = false;

  // Also adds to z what its gates see of the cell.
  template <typename Act>
  void forward(const Act& act) {
    if (peephole) {
      z[kInput] += peephole[kInput] * c;
      z[kForget] += peephole[kForget] * c;
    }
    const T input = act(kGates, z[kInput]);
    const T forget = input_forget ? 1 - input : act(kGates, z[kForget]);
    next_c = forget * c + input * act(kCandidate, z[kCell]);
    if (peephole) z[kOutput] += peephole[kOutput] * next_c;
    next_h = act(kGates, z[kOutput]) * act(kState, next_c);
  }

  struct Back {
    T dz[4] = {}, dc = 0, dpeephole[3] = {};
  };
  // From the gradients of next_h and next_c, after forward.
  template <typename Act>
  Back backward(const Act& act, T dh, T dnext_c) const {
    const T input = act(kGates, z[kInput]), output = act(kGates, z[kOutput]);
    const T forget = input_forget ? 1 - input : act(kGates, z[kForget]);
    const T candidate = act(kCandidate, z[kCell]), state = act(kState, next_c);
    Back back;
    const auto peek = [&](Gate gate, T seen) {  // the gradient of what the gate sees
      back.dpeephole[gate] = back.dz[gate] * seen;
      return peephole ? back.dz[gate] * peephole[gate] : T(0);
    };
    back.dz[kOutput] = dh * state * act.slope(kGates, z[kOutput], output);
    const T dc = dnext_c + dh * output * act.slope(kState, next_c, state) + peek(kOutput, next_c);
    back.dz[kInput] =
        dc * (input_forget ? candidate - c : candidate) * act.slope(kGates, z[kInput], input);
    if (!input_forget) back.dz[kForget] = dc * c * act.slope(kGates, z[kForget], forget);
    back.dz[kCell] = dc * input * act.slope(kCandidate, z[kCell], candidate);
    back.dc = dc * forget + peek(kInput, c) + peek(kForget, c);
    return back;
  }
};

template <typename T>
struct GruUnit {
  enum Gate { kUpdate, kReset, kNew };
  enum Activation { kGates, kCandidate };

  T z[3] = {};  // as of an lstm, but kNew has at first only what comes from x
  T h = 0, next_h = 0;
  bool linear_before_reset = false;

  // What row kNew multiplies, one for each unit of the state.
  template <typename Act>
  T scaled(const Act& act) const {
    return linear_before_reset ? h : act(kGates, z[kReset]) * h;
  }
  // `recurrent`: what comes from scaled(). Adds it to z.
  template <typename Act>
  void forward(const Act& act, T recurrent) {
    z[kNew] += linear_before_reset ? act(kGates, z[kReset]) * recurrent : recurrent;
    const T update = act(kGates, z[kUpdate]);
    next_h = (1 - update) * act(kCandidate, z[kNew]) + update * h;
  }

  struct Back {
    T dz[3] = {};  // kReset: from reset()
    T drecurrent = 0, dh = 0;
  };
  // From the gradient of next_h, after forward.
  template <typename Act>
  Back backward(const Act& act, T dnext_h) const {
    const T update = act(kGates, z[kUpdate]), fresh = act(kCandidate, z[kNew]);
    Back back;
    back.dz[kNew] = dnext_h * (1 - update) * act.slope(kCandidate, z[kNew], fresh);
    back.dz[kUpdate] = dnext_h * (h - fresh) * act.slope(kGates, z[kUpdate], update);
    back.drecurrent = linear_before_reset ? back.dz[kNew] * act(kGates, z[kReset]) : back.dz[kNew];
    back.dh = dnext_h * update;
    return back;
  }
  // The gradient of z of the reset gate; dnew is that of kNew. The gate scales `recurrent`, or the
  // state before the product, whose gradient is then dscaled and of which a part goes on to dh.
  template <typename Act>
  T reset(const Act& act, T dnew, T recurrent, T dscaled, T& dh) const {
    const T open = act(kGates, z[kReset]);
    if (!linear_before_reset) dh += dscaled * open;
    const T dopen = linear_before_reset ? dnew * recurrent : dscaled * h;
    return dopen * act.slope(kGates, z[kReset], open);
  }
};

}  // namespace anymps
