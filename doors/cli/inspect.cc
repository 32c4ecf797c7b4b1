// SPDX-License-Identifier: Apache-2.0
// `anymps inspect`: what is in a model: inputs, ops, the graph as text, JSON or a picture, what the
// passes did, which kernels were chosen, and the memory plan.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "options.h"
#include "session.h"

namespace anymps::cli {

namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions : ModelOptions {
  bool graph = false, compiled = false, passes = false, plan = false, memory = false, json = false;
  std::string svg;
};

void print_memory(const Json& memory) {
  const double arena = memory["arena_bytes"], apart = memory["unshared_bytes"];
  fmt::print("arena {} for {} tensors in {} steps; without sharing {}; lower bound {}\n",
             human_bytes(arena), memory["tensors"].size(), memory["steps"].get<size_t>(),
             human_bytes(apart), human_bytes(memory["lower_bound"].get<double>()));
  fmt::print("{:>12} {:>12} {:>6} {:>6}  value\n", "offset", "bytes", "from", "to");
  for (const auto& tensor : memory["tensors"])
    fmt::print("{:>12} {:>12} {:>6} {:>6}  {}\n", tensor["offset"].get<size_t>(),
               tensor["bytes"].get<size_t>(), tensor["first_step"].get<size_t>(),
               tensor["last_step"].get<size_t>(), shown(tensor["value"].get<std::string>()));
}

void print_plan(const Json& plan) {
  for (const auto& step : plan) {
    std::string kernel = step["kernel"];
    if (!step["detail"].get<std::string>().empty())
      kernel += " " + step["detail"].get<std::string>();
    fmt::print("{:<20} {:<40} {}\n", step["op"].get<std::string>(), kernel,
               shown(step["node"].get<std::string>()));
  }
}

void summary(const amps::Graph& graph) {
  fmt::print("inputs\n");
  for (const amps::Value& value : graph.inputs()) fmt::print("  {}\n", describe(value));
  fmt::print("outputs\n");
  for (const amps::Value& value : graph.outputs()) fmt::print("  {}\n", describe(value));
  std::map<std::string, int> ops;
  int nodes = 0;
  const Json json = Json::parse(graph.text("json"));
  for (const auto& node : json["nodes"]) {
    ++ops[node["op"]];
    ++nodes;
  }
  fmt::print("{} nodes\n", nodes);
  for (const auto& [op, count] : ops) fmt::print("  {:<24} {:>5}\n", op, count);
}

// What is in a program; it can be looked at even if it cannot be run.
void inspect_program(const amps::Program& program, const InspectOptions& options) {
  if (options.json) {
    fmt::print("{}\n", program.text("json"));
    return;
  }
  fmt::print("{}", program.text("text"));
  const std::vector<std::string> methods =
      options.method.empty() ? program.methods() : std::vector{options.method};
  for (const std::string& method : methods) {
    fmt::print("\ngraph of {}\n", shown(method));
    try {
      summary(program.graph(method));
    } catch (const amps::Error& error) {
      fmt::print("cannot be run: {}\n", shown(error.what()));
    }
  }
}

void inspect(const InspectOptions& options) {
  const bool needs_plan = options.plan || options.memory;
  const bool needs_executable = options.compiled || options.passes || needs_plan;
  if (!needs_executable) {
    if (!options.graph && options.svg.empty()) {
      if (const auto program = open_program(options.model)) {
        inspect_program(*program, options);
        return;
      }
    }
    const amps::Graph graph = load_graph(options.model, options.method);
    if (!options.svg.empty()) amps::write_file(options.svg, {graph.text("svg")});
    if (options.json)
      fmt::print("{}\n", graph.text("json"));
    else if (options.graph)
      fmt::print("{}", graph.text("text"));
    else if (options.svg.empty())
      summary(graph);
    return;
  }
  const Session session(options);
  if (!options.svg.empty()) amps::write_file(options.svg, {session.executable.text("svg")});
  if (options.passes) {
    const std::string passes = session.executable.text("passes");
    if (options.json) {
      fmt::print("{}\n", passes);
    } else {
      fmt::print("{:<26} {:>8} {:>12} {:>8}\n", "pass", "changes", "nodes after", "ms");
      for (const auto& pass : Json::parse(passes))
        fmt::print("{:<26} {:>8} {:>12} {:>8.2f}\n", pass["pass"].get<std::string>(),
                   pass["changes"].get<int>(), pass["nodes_after"].get<size_t>(),
                   pass["milliseconds"].get<double>());
    }
  }
  if (options.compiled) fmt::print("{}", session.executable.text(options.json ? "json" : "text"));
  if (!needs_plan) return;
  const std::vector<int64_t> dims = session.feed_dims(options);
  for (const char* what : {"plan", "memory"}) {
    if (!(what[0] == 'p' ? options.plan : options.memory)) continue;
    const Json report = Json::parse(session.executable.text(what, dims));
    if (options.json)
      fmt::print("{}\n", json_text(report));
    else if (what[0] == 'p')
      print_plan(report);
    else
      print_memory(report);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = options->add_command(app, "inspect", "look into a model");
  options->add_dims_to(*command, "of a dynamic dimension for --plan and --memory");
  command->add_flag("--graph", options->graph, "print the graph as it is in the file");
  command->add_flag("--compiled", options->compiled, "print the graph after the passes");
  command->add_flag("--passes", options->passes, "print what each pass did");
  command->add_flag("--plan", options->plan, "print the steps and the kernels chosen for them");
  command->add_flag("--memory", options->memory, "print the memory plan");
  command
      ->add_option("--svg", options->svg,
                   "write a picture of the graph (with --compiled: after the passes)")
      ->check(not_empty());
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] {
    if (options->json &&
        options->graph + options->compiled + options->passes + options->plan + options->memory > 1)
      wrong_usage("--json", "prints one of --graph, --compiled, --passes, --plan and --memory");
    if (!options->dims.empty() && !options->plan && !options->memory)
      wrong_usage("--dim", "is for --plan and --memory");
    inspect(*options);
  });
}

}  // namespace anymps::cli
