// SPDX-License-Identifier: Apache-2.0
// The walk of passes that find one op written as several.
#pragma once

#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

// For each node that rule(graph, node) has another value for, that one takes the place of its
// output. Drivers that do not fuse keep what they have.
template <typename Rule>
int fuse_each(Graph& graph, const PassContext& context, Rule&& rule) {
  if (!context.fuses) return 0;
  Rewriter rewriter(graph);
  return rewriter.each([&](Node& node) {
    Value* value = rule(graph, node);
    return value && rewriter.replace(node.output(), value);
  });
}

}  // namespace anymps
