// SPDX-License-Identifier: Apache-2.0
// The way back for ops that move elements of their first input in any manner.
#pragma once

#include "ops/gradients/axes.h"

namespace anymps {

// Adds each element of dy to the element of x (counted in row-major order) that `places` names.
Term move_back(GradientContext& ctx, const Term& places, const Term& dy);
// The same for an op that takes integers too: moving the numbers 0, 1, … instead of x's elements
// tells where each element of y came from.
Term move_back(GradientContext& ctx);

}  // namespace anymps
