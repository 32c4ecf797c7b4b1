// SPDX-License-Identifier: Apache-2.0
// Ops that the runtime runs itself, except those that hold graphs: their gradients are in
// src/graph/gradient_bodies.cc and src/graph/gradient_loops.cc.
#include "ops/gradient.h"

namespace anymps {

namespace {

constexpr const char* kList = "the gradient of a list or an optional is not taken";

}  // namespace

COMPLEX_GRADIENT(control_dependency) {
  for (size_t i = 0; i < ctx.output_count(); ++i)
    if (ctx.dy(i)) ctx.set(i, ctx.dy(i));
}

NO_GRADIENT(sequence_map, kList);
ZERO_GRADIENT(invalid_branch, "it has no inputs, and is never taken");
NO_GRADIENT(read_variable, "a variable is an input of the graph, not a value of it");
NO_GRADIENT(assign_variable, "put it after the gradient is taken");
NO_GRADIENT(sequence_construct, kList);
NO_GRADIENT(sequence_empty, kList);
NO_GRADIENT(sequence_at, kList);
NO_GRADIENT(sequence_insert, kList);
NO_GRADIENT(sequence_erase, kList);
NO_GRADIENT(split_to_sequence, kList);
NO_GRADIENT(concat_from_sequence, kList);
NO_GRADIENT(sequence_length, kList);
NO_GRADIENT(optional, kList);
NO_GRADIENT(optional_has_element, kList);
NO_GRADIENT(optional_get_element, kList);
NO_GRADIENT(container_identity, kList);
NO_GRADIENT(map_items, kList);
NO_GRADIENT(zip_map, kList);

}  // namespace anymps
