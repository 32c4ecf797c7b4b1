// SPDX-License-Identifier: Apache-2.0
// `anymps export-pte`: a torch.nn.Module as a program of ExecuTorch, lowered to MPSBackend. The
// work is done in Python by doors/executorch/anymps_executorch; this finds it and its environment.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "anymps/anymps.hpp"
#include "commands.h"
#include "other_program.h"

namespace anymps::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "anymps_executorch";

// The project's folder: the first one above the program that has the door.
fs::path project_folder() {
  const fs::path program = this_program();
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / "doors/executorch" / kModule)) return folder;
  throw amps::Error(AMPS_NOT_FOUND,
                    "[export-pte] needs the project's folder doors/executorch, and there is none "
                    "above " +
                        program.string());
}

[[noreturn]] void export_pte(const Words& arguments) {
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
  Words words{python.string(), "-m", std::string(kModule) + ".export_pte"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become("export-pte", std::move(words));
}

}  // namespace

void add_export_pte(CLI::App& app) {
  add_other_program(app, "export-pte",
                    "export a torch.nn.Module as an ExecuTorch program: my_module:factory …",
                    export_pte);
}

}  // namespace anymps::cli
