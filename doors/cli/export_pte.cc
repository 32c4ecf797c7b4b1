// SPDX-License-Identifier: Apache-2.0
// `anymps export-pte`: a torch.nn.Module as a program of ExecuTorch, lowered to MPSBackend. The
// work is done in Python by doors/executorch/anymps_executorch; this finds it and its environment.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "anymps/anymps.hpp"
#include "commands.h"

namespace anymps::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "anymps_executorch";

// The project's folder: the first one above the program that has the door.
fs::path project_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / "doors/executorch" / kModule)) return folder;
  throw amps::Error(AMPS_NOT_FOUND,
                    "[export-pte] needs the project's folder doors/executorch, and there is none "
                    "above " +
                        program.string());
}

[[noreturn]] void export_pte(const std::vector<std::string>& arguments) {
  const fs::path root = project_folder();
  const char* chosen = std::getenv("ANYMPS_VENV_DIR");
  const fs::path python =
      (chosen && *chosen ? fs::path(chosen) : root / ".venvs") / "executorch/bin/python";
  if (!fs::exists(python))
    throw amps::Error(
        AMPS_NOT_FOUND,
        fmt::format("[export-pte] there is no {}: `scripts/env executorch` installs it "
                    "(ExecuTorch and torch, about 3 GB)",
                    python.string()));
  const char* before = std::getenv("PYTHONPATH");
  const std::string door = (root / "doors/executorch").string();
  setenv("PYTHONPATH", before && *before ? (door + ":" + before).c_str() : door.c_str(), 1);
  std::vector<std::string> words{python.string(), "-m", std::string(kModule) + ".export_pte"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(python.c_str(), argv.data());
  throw amps::Error(AMPS_IO, fmt::format("[export-pte] {} cannot be started: {}", python.string(),
                                         std::strerror(errno)));
}

}  // namespace

void add_export_pte(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "export-pte", "export a torch.nn.Module as an ExecuTorch program: my_module:factory …");
  command->set_help_flag();  // --help is the exporter's
  command->prefix_command();
  command->callback([command] { export_pte(command->remaining()); });
}

}  // namespace anymps::cli
