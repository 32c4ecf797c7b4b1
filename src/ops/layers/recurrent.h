// SPDX-License-Identifier: Apache-2.0
// What the records of recurrent layers and of their gradients share: the shapes of a layer.
#pragma once

#include "ops/infer.h"
#include "semantics/recurrent.h"

namespace anymps {

inline const std::vector<std::string> kDirections = {"forward", "reverse", "bidirectional"};

// The shapes that follow from x and the attributes; those of b, seq_lens and so on if they are
// there.
struct RecurrentShapes {
  Dims w, r, b, lengths, state, peephole, y, reserve;
};

// Checks x and the attributes, and the inputs that every layer has: w, r, b and seq_lens.
RecurrentShapes recurrent_shapes(InferContext& ctx, int64_t gates);
int64_t recurrent_directions(const Attrs& attrs);
// The extents of a layer with this many gates on this x.
RecurrentExtents recurrent_extents(const Attrs& attrs, const Shape& x, int64_t gates);
RecurrentParts recurrent_parts(const Attrs& attrs, int64_t gates);
// The dtype of the reserve of a layer of this dtype: halves are kept as f32.
inline DType reserve_dtype(DType dtype) { return is_half(dtype) ? DType::kF32 : dtype; }
// What the gates, the candidate and the cell of a layer with this many gates have without the
// attribute `activations`.
std::vector<std::string> usual_activations(const Attrs& attrs, int64_t gates);
// Those of attribute `activations`, separated by commas, for each direction; `usual` without it.
std::vector<CellActivation> cell_activations(const Attrs& attrs, int64_t directions,
                                             const std::vector<std::string>& usual);

// Parts of a record.
inline constexpr const char* kSequenceDoc =
    "[steps, batch, input], or [batch, steps, input] for layout 1";
inline constexpr const char* kLengthsDoc = "[batch]; absent: all steps";
inline constexpr const char* kReserveDoc =
    "[steps, batch, directions, …], or [batch, steps, directions, …]; f32 of halves";
OpWriter& layer_size(OpWriter& op);        // hidden_size and direction
OpWriter& layer_steps(OpWriter& op);       // layout and clip
OpWriter& activation_lists(OpWriter& op);  // other activations than the usual ones
OpWriter& gate_order(OpWriter& op);        // of lstm and gru

}  // namespace anymps
