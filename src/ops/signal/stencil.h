// SPDX-License-Identifier: Apache-2.0
// The windows that the attributes of a stencil describe.
#pragma once

#include "ops/infer.h"
#include "semantics/signal/stencil.h"

namespace anymps {

// For the last axes of x; checked.
Stencil stencil_of(const Attrs& attrs, const Shape& in, const Shape& window);
// What is outside of an empty axis has to be constant.
void check_border(const InferContext& ctx, const Dims& in);

OpWriter& stencil_attrs(OpWriter& op);  // a part of the records: all attributes but `reduce`

}  // namespace anymps
