// SPDX-License-Identifier: Apache-2.0
// What records may know about the graphs in their attributes: the types that go in and come out.
// They do not know what a graph is; src/graph/ says how its types are read.
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

// Names the function that reads a signature; there is one.
struct SignatureReader {
  explicit SignatureReader(Signature (*read)(const Graph& body));
};

// Entry i of a list with one for each input or output that a scan goes through; an empty list is
// all zeros.
inline int64_t entry_or_zero(const Attrs& attrs, const char* attr, size_t i) {
  const std::vector<int64_t>& list = attrs.ints(attr);
  return list.empty() ? 0 : list[i];
}

}  // namespace anymps
