// SPDX-License-Identifier: Apache-2.0
// Checks of what options are given: a wrong value is wrong usage (exit code 2), reported with the
// option's name before anything is done.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>

namespace anymps::cli {

// Decimal digits, all of the text. Use with transform(): what CLI11 reads afterwards is plain.
CLI::Validator whole_number(uint64_t low, uint64_t high);
CLI::Validator real_number(double low, double high);
// NAME=VALUE with both there; of `extent` the value is a whole number.
CLI::Validator assignment(const char* value, bool extent);
CLI::Validator device_name();  // empty: the default
CLI::Validator not_empty();

std::pair<std::string, std::string> split_assignment(const std::string& text);

[[noreturn]] void wrong_usage(const std::string& option, const std::string& problem);

}  // namespace anymps::cli
