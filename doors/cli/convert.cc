// SPDX-License-Identifier: Apache-2.0
// `anymps convert`: a model file in another format; the name of the output says which.
#include <fmt/format.h>

#include <filesystem>

#include "anymps/anymps.hpp"
#include "commands.h"
#include "session.h"

namespace anymps::cli {

void add_convert(CLI::App& app) {
  struct Files {
    std::string model, output, method;
  };
  auto files = std::make_shared<Files>();
  CLI::App* command = app.add_subcommand("convert", "write a model in another format");
  command->add_option("model", files->model, "an .onnx, .mps or .pte file")->required();
  command->add_option("--method", files->method,
                      "which method of a .pte file; default: forward, or the only one");
  command->add_option("-o,--output", files->output, "the file to write: NAME.onnx or NAME.mps")
      ->required();
  command->callback([files] {
    check_output(files->output, files->model, {".onnx", ".mps"});
    load_graph(files->model, files->method).save(files->output);
    fmt::print("{}: {}\n", shown(files->output),
               human_bytes(static_cast<double>(std::filesystem::file_size(files->output))));
  });
}

}  // namespace anymps::cli
