// SPDX-License-Identifier: Apache-2.0
// `anymps compile`: a model file -> an .mps file, with the passes of a device done.
#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "options.h"
#include "session.h"

namespace anymps::cli {

void add_compile(CLI::App& app) {
  struct CompileOptions : ModelOptions {
    std::string output;
  };
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = options->add_command(app, "compile", "optimise a model and save it as .mps");
  command->add_option("-o,--output", options->output, "the .mps file; default: beside the model")
      ->check(not_empty());
  command->callback([options] {
    std::filesystem::path output = options->output;
    if (output.empty()) output = std::filesystem::path(options->model).replace_extension(".mps");
    check_output(output, options->model, {".mps"});
    if (options->level == 0) {
      load_graph(options->model, options->method).save(output.string());
    } else {
      const Session session(*options);
      session.executable.save(output.string());
    }
    fmt::print("{}: {}\n", shown(output.string()),
               human_bytes(static_cast<double>(std::filesystem::file_size(output))));
  });
}

}  // namespace anymps::cli
