// SPDX-License-Identifier: Apache-2.0
// A pass is a function from graph to graph, one per file:
//   PASS(fold_batch_norm, 300, "conv + batch_norm -> conv with other weights") { … }
// It returns how many places it changed. The pipeline runs passes by their order number, repeats
// the whole list until nothing changes, and verifies what came out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace anymps {

struct PassContext {
  bool prefers_nhwc = false;  // traits of the driver that will run the graph
  bool fuses = false;
  DTypeSet widened = 0;  // half types whose arithmetic the driver does faster in f32
  DTypeSet rounded = 0;  // those of them whose numbers are f32 now; widen_halves sets it
  // Computes a node whose inputs are all constants. Set by the runtime; null: no folding. Large
  // results are made lazily, see memory/constant.h.
  std::function<std::vector<ConstantPtr>(const Node&)> evaluate;
  std::optional<size_t>
      constant_bytes;                // what folding may have constants take; it sets that itself
  std::vector<std::string> without;  // names of passes to leave out
  int optimization_level = 1;        // 0: only what is needed to run; 1: all
  int weight_bits = 0;               // 8 or 4: weights are stored in so many; 0: as they are
  bool verify_each = true;           // after each pass too, so that an error names the pass
};

using PassFn = int (*)(Graph& graph, PassContext& context);

struct Pass {
  std::string name, doc;
  int order = 0;
  PassFn run = nullptr;
};

const std::vector<Pass>& all_passes();  // by order

struct PassReport {
  std::string name;
  int changes = 0;
  size_t nodes_after = 0;
  double milliseconds = 0;
};

// Runs the pipeline. ANYMPS_DUMP=passes prints the graph after each pass that changed it.
std::vector<PassReport> run_passes(Graph& graph, PassContext& context);

struct PassRegistrar {
  PassRegistrar(const char* name, int order, const char* doc, PassFn run);
};

#define PASS(pass_name, order, doc)                                                       \
  static int pass_##pass_name(::anymps::Graph& graph, ::anymps::PassContext& context);    \
  static const ::anymps::PassRegistrar pass_registrar_##pass_name(#pass_name, order, doc, \
                                                                  pass_##pass_name);      \
  static int pass_##pass_name([[maybe_unused]] ::anymps::Graph& graph,                    \
                              [[maybe_unused]] ::anymps::PassContext& context)

}  // namespace anymps
