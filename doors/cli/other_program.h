// SPDX-License-Identifier: Apache-2.0
// Commands that are programs of their own: this process becomes the other one, which reads the rest
// of the command line itself, --help included.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace anymps::cli {

using Words = std::vector<std::string>;

// `start` gets what stands behind the command's name.
void add_other_program(CLI::App& app, const std::string& name, const std::string& help,
                       std::function<void(const Words&)> start);

// The file of this program; empty if the system does not tell.
std::filesystem::path this_program();

// Runs words[0] in the place of this program. Throws amps::Error that begins with [part] if it
// cannot be started; `missing` says more where there is no such file.
[[noreturn]] void become(const std::string& part, Words words, const std::string& missing = "");

}  // namespace anymps::cli
