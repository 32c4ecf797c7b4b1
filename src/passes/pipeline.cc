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

std::vector<const Pass*> chosen_passes(const PassContext& context) {
  std::vector<const Pass*> chosen;
  for (const Pass& pass : all_passes())
    if (!env_contains("ANYMPS_PASSES", ("-" + pass.name).c_str()) &&
        std::find(context.without.begin(), context.without.end(), pass.name) ==
            context.without.end())
      chosen.push_back(&pass);
  return chosen;
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
  const bool each = context.verify_each || dump;
  std::vector<PassReport> reports;
  if (each || context.optimization_level <= 0) verify(graph);
  if (context.optimization_level <= 0) return reports;
  const std::vector<const Pass*> passes = chosen_passes(context);
  for (int round = 0; round < kMaxRounds; ++round) {
    int changes = 0;
    for (const Pass* next : passes) {
      const Pass& pass = *next;
      const auto start = std::chrono::steady_clock::now();
      const int changed = pass.run(graph, context);
      graph.insert_before(nullptr);
      if (changed && each) verify(graph, pass.name);
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
  if (!each) verify(graph, "the last (ANYMPS_VERIFY=passes tells which is wrong)");
  return reports;
}

}  // namespace anymps
