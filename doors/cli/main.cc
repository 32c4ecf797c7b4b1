// SPDX-License-Identifier: Apache-2.0
// `anymps`: run, measure and look into models. Exit codes: 0 done, 1 failed, 2 wrong usage,
// 3 a number differs from the reference (--check).
#include <fmt/format.h>

#include "anymps/anymps.hpp"
#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app("AnyMPS: the MPS graph stack on any machine", "anymps");
  app.set_version_flag("--version", std::string("anymps ") + amps_version());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  cli::add_run(app);
  cli::add_bench(app);
  cli::add_profile(app);
  cli::add_inspect(app);
  cli::add_compile(app);
  cli::add_convert(app);
  cli::add_export_pte(app);
  cli::add_serve(app);
  cli::add_ops(app);
  cli::add_doctor(app);
  cli::add_completion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const amps::Error& error) {
    fmt::print(stderr, "anymps: {}\n", error.what());
    return error.status() == AMPS_MISMATCH ? 3 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "anymps: {}\n", error.what());
    return 1;
  }
  return 0;
}
