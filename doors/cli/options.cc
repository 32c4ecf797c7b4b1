// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <vector>

#include "anymps/anymps.h"

namespace anymps::cli {

namespace {

template <typename T>
bool parse_number(const std::string& text, T low, T high, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= low && value <= high;
}

}  // namespace

CLI::Validator whole_number(uint64_t low, uint64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        uint64_t value = 0;
        if (!parse_number(text, low, high, value))
          return fmt::format("'{}' is no whole number from {} to {}", text, low, high);
        text = std::to_string(value);
        return {};
      },
      fmt::format("{} to {}", low, high));
}

CLI::Validator real_number(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        double value = 0;
        if (parse_number(text, low, high, value)) return {};
        return fmt::format("'{}' is no number from {} to {}", text, low, high);
      },
      fmt::format("{} to {}", low, high));
}

CLI::Validator assignment(const char* value, bool extent) {
  return CLI::Validator(
      [value, extent](std::string& text) -> std::string {
        const auto [name, given] = split_assignment(text);
        if (name.empty() || given.empty())
          return fmt::format("'{}' must have the form NAME={}", text, value);
        int64_t number = 0;
        if (extent && !parse_number(given, int64_t{0}, std::numeric_limits<int64_t>::max(), number))
          return fmt::format("'{}' is no extent: a whole number from 0 on", given);
        return {};
      },
      fmt::format("NAME={}", value));
}

CLI::Validator device_name() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        std::vector<std::string> names;
        for (size_t i = 0; i < amps_device_count(); ++i) {
          names.emplace_back(amps_device_name_at(i));
          if (text == names.back()) return {};
        }
        if (text.empty()) return {};
        return fmt::format("there is no device '{}'; there is {}", text, fmt::join(names, ", "));
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) -> std::string { return text.empty() ? "a name is needed" : ""; }, "");
}

std::pair<std::string, std::string> split_assignment(const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

void wrong_usage(const std::string& option, const std::string& problem) {
  throw CLI::ValidationError(option, problem);
}

}  // namespace anymps::cli
