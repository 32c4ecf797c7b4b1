// SPDX-License-Identifier: Apache-2.0
// Which part of AnyMPS stands for each op method of Apple's class MPSGraph.
#pragma once

#include <string>
#include <vector>

namespace anymps::api {

struct MpsMethod {
  std::string header, selector;
  std::vector<std::string> ops;  // records that name the selector
  std::string other;             // what covers it if no op does: a function of the C interface, …
  bool covered() const { return !ops.empty() || !other.empty(); }
};
std::vector<MpsMethod> mpsgraph_methods();  // in the order of the headers
std::string mpsgraph_markdown();            // docs/generated/mpsgraph.md

}  // namespace anymps::api
