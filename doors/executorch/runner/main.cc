// SPDX-License-Identifier: Apache-2.0
// `mps_executor_runner`: runs programs of ExecuTorch that were lowered to MPSBackend, without torch
// and without Python. Flags and output are upstream's. It uses the public headers alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "common/streams.h"
#include "flags.h"
#include "session.h"

namespace anymps::runner {
namespace {

constexpr const char* kProgram = "mps_executor_runner";

int wrong_usage(const std::string& message) {
  common::say(fmt::format("{}: {}\n", kProgram, message));
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  try {
    const Flags flags = parse_flags(arguments);
    if (flags.help) {
      fmt::print("{}", flags_help(kProgram));
      return 0;
    }
    if (flags.version) {
      fmt::print("mps_executor_runner of AnyMPS {}\n", amps_version());
      return 0;
    }
    if (arguments.empty())
      return wrong_usage("no options provided; --model_path names the program, --help lists all");
    if (!flags.positionals.empty())
      return wrong_usage(fmt::format(
          "extra command line arguments: {}{}", fmt::join(flags.positionals, " "),
          flags.was_given("model_path") ? "" : "; the program's file goes after --model_path"));
    if (!std::filesystem::exists(flags.model_path))
      return wrong_usage(
          fmt::format("there is no file {}{}", flags.model_path,
                      flags.was_given("model_path") ? "" : "; --model_path names the program"));
    return Session(flags).run() ? 0 : 1;
  } catch (const FlagError& error) {
    return wrong_usage(error.what());
  } catch (const std::exception& error) {
    common::say(fmt::format("{}: {}\n", kProgram, error.what()));
    return 1;
  }
}

}  // namespace
}  // namespace anymps::runner

int main(int argc, char** argv) {
  using namespace anymps;
  common::open_standard_streams();
  return common::end_output(runner::kProgram, runner::run({argv + 1, argv + argc}));
}
