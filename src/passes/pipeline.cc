// SPDX-License-Identifier: Apache-2.0
// The pipeline: which passes run, in which order, how often, and what is checked in between.
#include <fmt/ranges.h>

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

// A name of a pass that is not there would leave nothing out, and nobody would know.
void check_pass_name(std::string_view name, const char* who) {
  const auto same = [&](const Pass& pass) { return pass.name == name; };
  if (std::any_of(registry().begin(), registry().end(), same)) return;
  std::vector<std::string> known;
  for (const Pass& pass : registry()) known.push_back(pass.name);
  fail(Code::kInvalidArgument, "[passes] {}: there is no pass '{}'; there are {}", who, name,
       fmt::join(known, ", "));
}

std::vector<const Pass*> chosen_passes(const PassContext& context) {
  std::vector<std::string> without = context.without;
  for (const std::string& name : without) check_pass_name(name, "passes to leave out");
  for (const std::string& word : env_words("ANYMPS_PASSES")) {
    require(word[0] == '-' || word[0] == '+',
            "[env] ANYMPS_PASSES: '{}' needs a '-' (leave out) or a '+' (ask for) before it", word);
    check_pass_name(std::string_view(word).substr(1), "ANYMPS_PASSES");
    if (word[0] == '-') without.push_back(word.substr(1));
  }
  std::vector<const Pass*> chosen;
  for (const Pass& pass : all_passes())
    if (std::find(without.begin(), without.end(), pass.name) == without.end())
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
