// SPDX-License-Identifier: Apache-2.0
// The pipeline: which passes run, in which order, how often, and what is checked in between.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/env.h"
#include "graph/printer.h"
#include "passes/pass.h"

namespace anymps {

namespace {

constexpr int kMaxRounds = 8;  // passes converge in two or three; this bounds a pair that fights

std::vector<Pass>& registry() {
  static std::vector<Pass> passes;
  return passes;
}

bool left_out(const PassContext& context, const std::string& name) {
  return env_contains("ANYMPS_PASSES", ("-" + name).c_str()) ||
         std::find(context.without.begin(), context.without.end(), name) != context.without.end();
}

}  // namespace

PassRegistrar::PassRegistrar(const char* name, int order, const char* doc, PassFn run) {
  auto& passes = registry();
  passes.push_back({name, doc, order, run});
  std::sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) {
    return std::tie(a.order, a.name) < std::tie(b.order, b.name);
  });
}

const std::vector<Pass>& all_passes() { return registry(); }

std::vector<PassReport> run_passes(Graph& graph, PassContext& context) {
  const bool dump = env_contains("ANYMPS_DUMP", "passes");
  std::vector<PassReport> reports;
  verify(graph);
  if (context.optimization_level <= 0) return reports;
  for (int round = 0; round < kMaxRounds; ++round) {
    int changes = 0;
    for (const Pass& pass : all_passes()) {
      if (left_out(context, pass.name)) continue;
      const auto start = std::chrono::steady_clock::now();
      const int changed = pass.run(graph, context);
      graph.insert_before(nullptr);
      if (changed) verify(graph, pass.name);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      reports.push_back({pass.name, changed, graph.node_count(), took.count()});
      changes += changed;
      if (dump && changed)
        std::fprintf(stderr, "--- after %s: %d changes\n%s\n", pass.name.c_str(), changed,
                     to_text(graph).c_str());
    }
    if (changes == 0) break;
  }
  return reports;
}

}  // namespace anymps
