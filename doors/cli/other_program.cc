// SPDX-License-Identifier: Apache-2.0
#include "other_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "anymps/anymps.hpp"

namespace anymps::cli {

void add_other_program(CLI::App& app, const std::string& name, const std::string& help,
                       std::function<void(const Words&)> start) {
  CLI::App* command = app.add_subcommand(name, help);
  command->set_help_flag();  // --help is the other program's
  command->prefix_command();
  command->callback([command, start = std::move(start)] { start(command->remaining()); });
}

std::filesystem::path this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

void become(const std::string& part, Words words, const std::string& missing) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(argv[0], argv.data());
  if (errno == ENOENT && !missing.empty())
    throw amps::Error(AMPS_NOT_FOUND,
                      fmt::format("[{}] there is no {}: {}", part, words[0], missing));
  throw amps::Error(
      AMPS_IO, fmt::format("[{}] {} cannot be started: {}", part, words[0], std::strerror(errno)));
}

}  // namespace anymps::cli
