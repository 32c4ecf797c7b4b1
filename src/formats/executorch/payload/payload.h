// SPDX-License-Identifier: Apache-2.0
// What upstream's exporter hands to the delegate `MPSBackend`: a header, a FlatBuffer "MP00" with
// nodes and values, and a segment of constants. Each of the 90 node kinds is one small function in
// the file of its family (elementwise.cc, …).
#pragma once

#include <memory>
#include <string>

#include "formats/executorch/program/program.h"
#include "formats/node_builder.h"

namespace anymps::executorch {

bool is_payload(std::string_view bytes);  // by its header

// The FlatBuffer with nodes and values, and the constants.
struct PayloadParts {
  std::string_view graph, segment;
};
PayloadParts split_payload(const Source& payload);  // fails when the header is wrong

// Adds the nodes of a payload to `graph`. `inputs` are the arguments of the call, in the order of
// the payload's input_ids; returns the values of its output_ids. Names of nodes start with `stem`.
Values add_payload(Graph& graph, const Source& payload, const Values& inputs,
                   const std::string& stem);

// A payload alone as a graph with the inputs that it declares: for the delegate in a stock runtime.
// `dims`, if given, are the extents of all inputs, one after the other, in place of those that it
// declares; -1: dynamic.
std::unique_ptr<Graph> import_payload(const Source& payload, const Ints* dims = nullptr);

}  // namespace anymps::executorch
