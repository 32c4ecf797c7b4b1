// SPDX-License-Identifier: Apache-2.0
// `anymps serve`: starts anymps-server, which lies beside this program and takes the same
// arguments. It is a program of its own, so that the other commands do not load gRPC.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "anymps/anymps.hpp"
#include "commands.h"

namespace anymps::cli {

namespace {

[[noreturn]] void serve(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (here.parent_path() / "anymps-server").string();
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), argv.data());
  if (errno == ENOENT)
    throw amps::Error(AMPS_NOT_FOUND,
                      fmt::format("[serve] there is no {}: build the target anymps_server "
                                  "(cmake -DANYMPS_BUILD_SERVER=ON)",
                                  program));
  throw amps::Error(AMPS_IO,
                    fmt::format("[serve] {} cannot be started: {}", program, std::strerror(errno)));
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "serve", "serve models over HTTP and gRPC (KServe v2, Triton's extensions)");
  command->set_help_flag();  // --help is the server's
  command->prefix_command();
  command->callback([command] { serve(command->remaining()); });
}

}  // namespace anymps::cli
