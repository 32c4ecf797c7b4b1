// SPDX-License-Identifier: Apache-2.0
// Weights of recurrent layers that are whole multiples of a step, as those of quantized models are:
// in bytes, a quarter of what each step reads. States, which lie between -1 and 1, are split into
// three bytes: 24 bits, as many as f32 has. Rows with larger numbers are multiplied in f32. Where
// the layer itself rounds what it multiplies to 8 bits, one byte is all there is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/layers/recurrent/recurrent_panels.h"

namespace anymps::cpu {

// Whether this processor multiplies bytes (VNNI), and rows of this depth can be summed and are no
// multiples by chance.
bool takes_byte_weights(int64_t depth);

// The step of each row of `depth` weights, each of which is the step times an integer of -128 to
// 127, to the bit; 0: there is none for some row, and what is said of others is nothing.
void find_steps(const float* weights, int64_t rows, int64_t depth, float* steps);

// [panels, words of four of the depth, gates, lanes] words, then of each column its step and the
// sum of its bytes: [panels, gates, lanes] each.
struct ByteWeights {
  int64_t panels = 0, depth = 0, gates = 0, lanes = 0;

  int64_t words() const { return (depth + 3) / 4; }
  int64_t row() const { return gates * lanes; }
  int64_t count() const { return panels * (words() + 2) * row(); }  // words of all
  // Column `column` of a panel: row `weights` of find_steps.
  void set_column(int64_t panel, int64_t column, const float* weights, float step,
                  int32_t* to) const;
  void tell(const int32_t* from, GateProduct& product) const;
};

// multiply_panels, of GateProduct::words or what is rounded to bytes.
void multiply_byte_panels(const GateProduct& product, const PanelRow* rows, int64_t count,
                          int64_t first, int64_t last);

}  // namespace anymps::cpu
