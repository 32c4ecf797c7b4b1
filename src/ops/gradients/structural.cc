// SPDX-License-Identifier: Apache-2.0
// Ops that the runtime runs by itself. Differentiating through the graphs that they hold is not
// done here.
#include "ops/gradient.h"

namespace anymps {

namespace {

constexpr const char* kBody = "the gradient of a graph inside a node is not taken";
constexpr const char* kList = "the gradient of a list or an optional is not taken";

}  // namespace

NO_GRADIENT(while_loop, kBody);
NO_GRADIENT(for_loop, kBody);
NO_GRADIENT(loop, kBody);
NO_GRADIENT(scan, kBody);
NO_GRADIENT(sequence_map, kBody);
NO_GRADIENT(invalid_branch, kBody);
NO_GRADIENT(control_dependency, "put it after the gradient is taken");
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
NO_GRADIENT(zip_map, kList);

}  // namespace anymps
