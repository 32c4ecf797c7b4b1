// SPDX-License-Identifier: Apache-2.0
// The gradient of an op that only passes make.
#include "ops/gradient.h"

namespace anymps {

NO_GRADIENT(fused_elementwise, "it is made by passes: differentiate the graph, then compile it");

}  // namespace anymps
