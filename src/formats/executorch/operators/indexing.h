// SPDX-License-Identifier: Apache-2.0
// Torch's indexing by tensors, x[:, i, mask]: what index.Tensor and index_put are, inside delegates
// and outside. An entry of `indices` for each axis, from the first on; null leaves an axis alone, a
// mask (bool or u8) covers as many axes as it has and stands for the places where it is true. Index
// tensors broadcast together.
#pragma once

#include "formats/node_builder.h"

namespace anymps::executorch {

Value* take_at(NodeBuilder& c, Value* x, const Values& indices);
// x with `values`, which broadcast to what take_at would give, written or added there.
Value* put_at(NodeBuilder& c, Value* x, const Values& indices, Value* values, bool accumulate);

}  // namespace anymps::executorch
