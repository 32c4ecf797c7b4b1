// SPDX-License-Identifier: Apache-2.0
// Ops that have no gradient here, with the reason.
#include "ops/gradient.h"

namespace anymps {

NO_GRADIENT(custom, "only its author knows the gradient of an op of your own");
NO_GRADIENT(fused_elementwise, "it is made by passes: differentiate the graph, then compile it");
NO_GRADIENT(linear_attention_gradient, "linear attention has no second gradient");
NO_GRADIENT(pair_coupling, "an iteration makes it");
NO_GRADIENT(tree_ensemble, "trees are made of steps, and their leaves are not trained here");

}  // namespace anymps
