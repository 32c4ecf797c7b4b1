// SPDX-License-Identifier: Apache-2.0
// What records may know about the graphs in their attributes: the types that go in and come out.
// The functions are defined in src/graph/, which the op table does not know.
#pragma once

#include <string>
#include <vector>

#include "ops/infer.h"

namespace anymps {

struct Node;

struct Signature {
  std::vector<std::string> names;  // of the inputs
  std::vector<ValueType> inputs, outputs;
};
Signature signature_of(const Graph& body);

// Entry i of a list with one for each input or output that a scan goes through; an empty list is
// all zeros.
inline int64_t entry_or_zero(const Attrs& attrs, const char* attr, size_t i) {
  const std::vector<int64_t>& list = attrs.ints(attr);
  return list.empty() ? 0 : list[i];
}

// Whether a node must run even if nobody uses its outputs, and as often as it is there: it is
// impure, or holds a graph with such a node.
bool has_effects(const Node& node);

}  // namespace anymps
