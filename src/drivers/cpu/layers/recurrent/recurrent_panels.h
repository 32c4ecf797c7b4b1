// SPDX-License-Identifier: Apache-2.0
// The vector code of recurrent layers whose weights are packed: the products of a step, with the
// gates of a panel of units beside each other, and what the gates make of them. A panel is one
// vector of units.
#pragma once

#include <cstdint>

#include "semantics/cell_activation.h"
#include "semantics/quantization_rules.h"

namespace anymps::cpu {

// One sequence in one step. z holds the sums that the gates see, [panels, slots, lanes]; the slots
// of a panel are
//   lstm  input, output, forget, cell          rnn  the only one
//   gru   update, reset, new                   with linear_before_reset: what comes from x for the
//                                              new gate, update, reset, what comes from the state
struct PanelRow {
  const float* state = nullptr;  // before the step; of a row of the projection: of x
  float* z = nullptr;
  float* next = nullptr;    // the state after the step
  float* cell = nullptr;    // lstm, whole panels: before the step, and then after it
  float* scaled = nullptr;  // gru, whole panels: the state after the reset gate
};

struct GateProduct {
  const float* weights = nullptr;  // [panels, depth, gates, lanes]
  int64_t depth = 0, gates = 0;
  int64_t slots = 0, first = 0;  // of z; the gates' begin with slot `first`
  bool scaled = false;           // multiplies PanelRow::scaled, not the state
  // What the sums begin with, if not with what is in z: [panels, gates, lanes]; of the last gate
  // alone: [panels, lanes].
  const float *bias = nullptr, *last_bias = nullptr;
  // Weights in bytes, as recurrent_bytes.h has them: then those of f32 may be missing.
  const int32_t *words = nullptr, *sums = nullptr;
  const float* steps = nullptr;
  // What is multiplied is rounded to 8 bits (lstm: dynamic_bytes): each row by itself, or all in
  // given steps.
  bool dynamic = false;
  const DynamicSteps* given = nullptr;
};

// Adds the products to z, for panels first to last.
void multiply_panels(const GateProduct& product, const PanelRow* rows, int64_t count, int64_t first,
                     int64_t last);

struct PanelGates {
  // kGruReset and kGruNew are the two halves of a gru whose reset gate comes before the product.
  enum Kind { kLstm, kGruLinear, kGruReset, kGruNew, kRnn } kind = kLstm;
  int64_t hidden = 0;
  float clip = 0;                   // 0: none
  const float* peephole = nullptr;  // lstm: [3, panels, lanes]; null: none
  bool input_forget = false;
  CellActivation::Kind activation = CellActivation::Kind::kTanh;  // rnn: it, kSigmoid or kRelu
};

// What the gates make of the sums, for panels first to last.
void apply_gates(const PanelGates& gates, const PanelRow* rows, int64_t count, int64_t first,
                 int64_t last);

int64_t panel_lanes();

}  // namespace anymps::cpu
