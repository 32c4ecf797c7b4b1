// SPDX-License-Identifier: Apache-2.0
// `anymps convert`: a model file in another format; the name of the output says which.
#include <fmt/format.h>

#include <filesystem>

#include "anymps/anymps.hpp"
#include "commands.h"
#include "session.h"

namespace cli {

void add_convert(CLI::App& app) {
  struct Files {
    std::string model, output;
  };
  auto files = std::make_shared<Files>();
  CLI::App* command = app.add_subcommand("convert", "write a model in another format");
  command->add_option("model", files->model, "an .onnx or .mps file")->required();
  command->add_option("-o,--output", files->output, "the file to write: NAME.onnx or NAME.mps")
      ->required();
  command->callback([files] {
    std::error_code none;
    if (std::filesystem::equivalent(files->output, files->model, none))
      throw amps::Error(AMPS_INVALID_ARGUMENT, "[convert] the output would overwrite the model");
    amps::Graph::load(files->model).save(files->output);
    fmt::print("{}: {}\n", files->output,
               human_bytes(static_cast<double>(std::filesystem::file_size(files->output))));
  });
}

}  // namespace cli
