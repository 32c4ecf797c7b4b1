// SPDX-License-Identifier: Apache-2.0
// The command line of anymps-server: tritonserver's flags, `--flag=value` and `--flag value`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/core/options.h"

namespace anymps::server {

// Fills `options`. An exit code if the program is to end at once: 0 after --help and --version, 2
// after a message that says what is wrong.
std::optional<int> parse_flags(int argc, const char* const* argv, Options& options);

// What is possible and rarely meant: everyone who reaches this machine is let in.
std::vector<std::string> warnings(const Options& options);

}  // namespace anymps::server
