// SPDX-License-Identifier: Apache-2.0
// Ops that end in an activation (matmul, conv) are differentiated as the op without it and the
// activation's own op behind it.
#pragma once

#include "ops/gradient.h"

namespace anymps {

// True when the node had an activation and its gradients have been said; false when it has none.
bool through_activation(GradientContext& ctx, const char* alpha, const char* beta);

}  // namespace anymps
