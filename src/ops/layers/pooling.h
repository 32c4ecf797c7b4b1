// SPDX-License-Identifier: Apache-2.0
// What the records of pooling and of its gradients share, and what their attributes say.
#pragma once

#include <string>
#include <vector>

#include "ops/layers/window.h"
#include "semantics/pool_index.h"

namespace anymps {

OpWriter& pooling_window(OpWriter& op);               // the attributes that describe the window
Dims pooled_shape(InferContext& ctx, const Dims& x);  // the shape of the pooled x
std::vector<std::string> pool_index_choices();        // of attribute `indices`

// Of a tensor `x` that is pooled: its spatial extents, its window, and how places are told.
Shape spatial_extents(const Attrs& attrs, const Shape& x);
Window pool_window(const Attrs& attrs, const Shape& x);
PoolIndex pool_index(const Attrs& attrs, const Shape& x, const Window& window);

}  // namespace anymps
