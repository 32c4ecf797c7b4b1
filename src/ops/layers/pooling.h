// SPDX-License-Identifier: Apache-2.0
// What the records of pooling and of its gradients share.
#pragma once

#include "ops/layers/window.h"

namespace anymps {

OpWriter& pooling_window(OpWriter& op);               // the attributes that describe the window
Dims pooled_shape(InferContext& ctx, const Dims& x);  // the shape of the pooled x

}  // namespace anymps
