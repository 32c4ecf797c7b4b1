// SPDX-License-Identifier: Apache-2.0
// `anymps ops`: the op table, for people, for the docs and for tools.
#include <fmt/format.h>

#include "anymps/anymps.hpp"
#include "commands.h"

namespace cli {

void add_ops(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ops", "list the ops");
  auto format = std::make_shared<std::string>("text");
  CLI::Option_group* group = command->add_option_group("format");
  auto flag = [&](const char* name, const char* value, const char* doc) {
    group->add_flag_callback(
        name, [format, value] { *format = value; }, doc);
  };
  flag("--markdown", "markdown", "the op reference (docs/generated/ops.md)");
  flag("--matrix", "matrix", "which driver has which kernels (docs/generated/support.md)");
  flag("--mpsgraph", "mpsgraph", "what covers MPSGraph's methods (docs/generated/mpsgraph.md)");
  flag("--hpp", "hpp", "the C++ builder methods (include/anymps/ops.hpp)");
  flag("--json", "json", "everything, as JSON");
  group->require_option(0, 1);
  command->callback([format] { fmt::print("{}", amps::ops_text(*format)); });
}

}  // namespace cli
