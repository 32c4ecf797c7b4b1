// SPDX-License-Identifier: Apache-2.0
// `anymps compile`: a model file -> an .mps file, with the passes of a device done, and with
// weights in few bits if asked for: then also what that changes.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "accuracy.h"
#include "commands.h"
#include "options.h"
#include "session.h"

namespace anymps::cli {

namespace {

using Json = nlohmann::ordered_json;

struct CompileOptions : ModelOptions {
  std::string output;
  int64_t samples = 4;
  bool json = false;
};

struct Weights {
  int64_t products = 0;  // with weights in few bits
  uint64_t bytes = 0;    // of all constants
};

Weights weights_of(const Session& session) {
  Weights weights;
  const Json graph = Json::parse(session.executable.text("json"));
  for (const auto& node : graph["nodes"]) weights.products += node["op"] == "weight_only_matmul";
  for (const auto& constant : graph["constants"])
    weights.bytes += constant["bytes"].get<uint64_t>();
  return weights;
}

int64_t places_of(const Session& session) {
  int64_t places = 0;
  for (const auto& pass : Json::parse(session.executable.text("passes")))
    if (pass["pass"] == "quantize_weights") places += pass["changes"].get<int64_t>();
  return places;
}

// What became of the weights, and of the outputs.
Json quantized(const CompileOptions& options, const Session& session, bool prints) {
  Json report{{"weights", options.quantize}};
  const int64_t places = places_of(session);
  if (places == 0) {
    report.update({{"products", 0}, {"tables", 0}});
    if (prints)
      fmt::print(
          "nothing to quantize: no product or table has a constant matrix of 16384 or more "
          "floats\n");
    return report;
  }
  ModelOptions plain_options = options;
  plain_options.quantize.clear();
  const Session plain(plain_options);
  const Weights before = weights_of(plain), after = weights_of(session);
  const int64_t products = after.products - before.products;
  report.update({{"products", products}, {"tables", places - products}});
  report.update({{"constant_bytes", after.bytes}, {"constant_bytes_before", before.bytes}});
  if (prints)
    fmt::print("{}: weights of {} products, {} tables; constants {} -> {}\n", options.quantize,
               products, places - products, human_bytes(static_cast<double>(before.bytes)),
               human_bytes(static_cast<double>(after.bytes)));
  if (options.samples == 0) return report;
  const Differences differences = compare(plain, session, options, options.samples);
  report.update({{"samples", options.samples}, {"seed", options.seed}});
  report["outputs"] = to_json(differences);
  if (!prints) return report;
  fmt::print("outputs beside those of the model as it was, over {} sets of inputs, seed {}:\n",
             options.samples, options.seed);
  print(differences);
  return report;
}

void compile(const CompileOptions& options) {
  std::filesystem::path output = options.output;
  if (output.empty()) output = std::filesystem::path(options.model).replace_extension(".mps");
  check_output(output, options.model, {".mps"});
  if (options.level == 0 && !options.quantize.empty())
    wrong_usage("--quantize", "it is a pass, and there are none with --level 0");
  Json report{{"output", output.string()}};
  if (options.level == 0) {
    load_graph(options.model, options.method).save(output.string());
  } else {
    const Session session(options);
    if (!options.quantize.empty()) report["quantize"] = quantized(options, session, !options.json);
    session.executable.save(output.string());
  }
  const uint64_t bytes = std::filesystem::file_size(output);
  report["bytes"] = bytes;
  if (options.json)
    fmt::print("{}\n", json_text(report));
  else
    fmt::print("{}: {}\n", shown(output.string()), human_bytes(static_cast<double>(bytes)));
}

}  // namespace

void add_compile(CLI::App& app) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = options->add_command(app, "compile", "optimise a model and save it as .mps");
  command->add_option("-o,--output", options->output, "the .mps file; default: beside the model")
      ->check(not_empty());
  CLI::Option* quantize =
      command
          ->add_option("--quantize", options->quantize,
                       "int8 or int4: weights of large products in so many bits, tables of "
                       "embeddings in 8; says how far the outputs move")
          ->check(CLI::IsMember({"int8", "int4"}));
  for (CLI::Option* option : options->add_feeds_to(*command)) option->needs(quantize);
  command
      ->add_option("--samples", options->samples,
                   "how many sets of inputs are compared, random where there is no file; default "
                   "4, 0: none")
      ->transform(whole_number(0, 1'000'000))
      ->needs(quantize);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] { compile(*options); });
}

}  // namespace anymps::cli
