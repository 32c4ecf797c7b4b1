// SPDX-License-Identifier: Apache-2.0
// `anymps`: run, measure and look into models. Exit codes: 0 done, 1 failed, 2 wrong usage,
// 3 a number differs from the reference (--check).
#include <fmt/format.h>

#include "anymps/anymps.hpp"
#include "commands.h"
#include "common/shown.h"
#include "common/streams.h"

namespace anymps::cli {
namespace {

int complain(const char* what, int code) {
  common::say(fmt::format("anymps: {}\n", common::shown(what)));
  return code;
}

int run_command(int argc, char** argv) {
  CLI::App app("AnyMPS: the MPS graph stack on any machine", "anymps");
  app.set_version_flag("--version", std::string("anymps ") + amps_version());
  app.require_subcommand(1);
  add_run(app);
  add_bench(app);
  add_profile(app);
  add_inspect(app);
  add_compile(app);
  add_convert(app);
  add_export_pte(app);
  add_serve(app);
  add_ops(app);
  add_doctor(app);
  add_completion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto chosen = app.get_subcommands();
    complain(error.what(), 2);
    common::say(fmt::format("`anymps {}{}--help` says more\n",
                            chosen.empty() ? "" : chosen[0]->get_name(),
                            chosen.empty() ? "" : " "));
    return 2;
  } catch (const amps::Error& error) {
    return complain(error.what(), error.status() == AMPS_MISMATCH ? 3 : 1);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
  return 0;
}

}  // namespace
}  // namespace anymps::cli

int main(int argc, char** argv) {
  anymps::common::open_standard_streams();
  return anymps::common::end_output("anymps", anymps::cli::run_command(argc, argv));
}
