// SPDX-License-Identifier: Apache-2.0
// `anymps ops`: the op table, for people, for the docs and for tools.
#include <fmt/format.h>

#include <algorithm>

#include "anymps/anymps.hpp"
#include "commands.h"

namespace anymps::cli {

namespace {

// The part of the op reference about one op.
std::string reference_of(const std::string& name) {
  const std::string all = amps::ops_text("markdown"), heading = "\n### ";
  std::string similar;
  for (size_t at = all.find(heading); at != std::string::npos;) {
    const size_t next = all.find(heading, at + 1);
    const size_t begin = at + heading.size(), line = all.find('\n', begin);
    const std::string found = all.substr(begin, line - begin);
    if (found == name)
      return all.substr(at + 1, std::min({next, all.find("\n## ", begin), all.size()}) - at - 1);
    if (found.find(name) != std::string::npos) similar += (similar.empty() ? "" : ", ") + found;
    at = next;
  }
  throw amps::Error(AMPS_NOT_FOUND, fmt::format("[ops] there is no op '{}'; {}", name,
                                                similar.empty() ? "'anymps ops' lists all"
                                                                : "there is " + similar));
}

}  // namespace

void add_ops(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ops", "list the ops, or tell of one");
  auto name = std::make_shared<std::string>();
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
  group->add_option("op", *name, "the op to tell of; default: a line for each");
  group->require_option(0, 1);
  command->callback([format, name] {
    fmt::print("{}", name->empty() ? amps::ops_text(*format) : reference_of(*name));
  });
}

}  // namespace anymps::cli
