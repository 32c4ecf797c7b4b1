// SPDX-License-Identifier: Apache-2.0
#include "flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <variant>

namespace anymps::runner {

namespace {

using Place = std::variant<bool Flags::*, int Flags::*, int64_t Flags::*, double Flags::*,
                           std::string Flags::*>;

struct Flag {
  const char* name;
  Place place;
  const char* doc;
};

const Flag kFlags[] = {
    {"model_path", &Flags::model_path, "the program (.pte), plain or bundled with test cases"},
    {"method_name", &Flags::method_name, "the method to run; \"\": the first"},
    {"bundled_program", &Flags::bundled_program,
     "take the inputs from the bundle and verify the outputs against it; else inputs are ones"},
    {"testset_idx", &Flags::testset_idx, "the bundle's test case"},
    {"num_runs", &Flags::num_runs, "measured runs (also --num-runs)"},
    {"skip_warmup", &Flags::skip_warmup, "no run before the measured ones"},
    {"profile", &Flags::profile, "print the time of each run and of each op; write an ETDump"},
    {"print_output", &Flags::print_output, "print the outputs"},
    {"etdump_path", &Flags::etdump_path,
     "where the ETDump goes; written when this, --profile or --dump_… is given"},
    {"prof_result_path", &Flags::prof_result_path,
     "where a trace for Perfetto goes; written when this is given"},
    {"dump_outputs", &Flags::dump_outputs, "record the program's outputs in the ETDump"},
    {"dump_intermediate_outputs", &Flags::dump_intermediate_outputs,
     "record what each node computes in the ETDump; runs the graph once more, unoptimised"},
    {"debug_output_path", &Flags::debug_output_path, "where the recorded elements go"},
    {"debug_buffer_size", &Flags::debug_buffer_size, "bytes that may be recorded"},
    {"rtol", &Flags::rtol,
     "allowed difference relative to the expected element; -1: 1e-4, or 2e-2 if the program "
     "was exported with fp16"},
    {"atol", &Flags::atol,
     "allowed difference; -1: as rtol, times the output's largest element if that is below 1"},
    {"cpu_threads", &Flags::cpu_threads, "threads; -1: all cores"},
    {"device", &Flags::device, "cpu or reference; \"\": $ANYMPS_DRIVER or cpu"},
    {"help", &Flags::help, "show this"},
    {"version", &Flags::version, "show the version"},
};

const Flag* find_flag(const std::string& name) {
  for (const Flag& flag : kFlags)
    if (name == flag.name) return &flag;
  return nullptr;
}

bool is_bool(const Flag& flag) { return std::holds_alternative<bool Flags::*>(flag.place); }

bool parse_bool(const Flag& flag, std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* yes : {"1", "t", "true", "y", "yes"})
    if (text == yes) return true;
  for (const char* no : {"0", "f", "false", "n", "no"})
    if (text == no) return false;
  throw FlagError(fmt::format("--{}={}: neither true nor false", flag.name, text));
}

template <typename T>
T parse_number(const Flag& flag, const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end)
    throw FlagError(fmt::format("--{}={}: out of range, it must be from {} to {}", flag.name, text,
                                std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()));
  if (error != std::errc() || stop != end)
    throw FlagError(fmt::format("--{}={}: not {}", flag.name, text,
                                std::is_integral_v<T> ? "an integer" : "a number"));
  return value;
}

void set_flag(Flags& flags, const Flag& flag, const std::string& text) {
  if (const auto* place = std::get_if<bool Flags::*>(&flag.place))
    flags.** place = parse_bool(flag, text);
  else if (const auto* integer = std::get_if<int Flags::*>(&flag.place))
    flags.** integer = parse_number<int>(flag, text);
  else if (const auto* wide = std::get_if<int64_t Flags::*>(&flag.place))
    flags.** wide = parse_number<int64_t>(flag, text);
  else if (const auto* real = std::get_if<double Flags::*>(&flag.place))
    flags.** real = parse_number<double>(flag, text);
  else
    flags.*std::get<std::string Flags::*>(flag.place) = text;
  flags.given.insert(flag.name);
}

// How many letters have to change: to guess what a misspelt flag was meant to be.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void unknown(const std::string& name) {
  const Flag* nearest = &kFlags[0];
  for (const Flag& flag : kFlags)
    if (distance(name, flag.name) < distance(name, nearest->name)) nearest = &flag;
  const bool close = distance(name, nearest->name) <= std::max<size_t>(1, name.size() / 4);
  throw FlagError(fmt::format("unknown command line flag '{}'{}", name,
                              close ? fmt::format(": did you mean --{}?", nearest->name)
                                    : "; --help lists those that there are"));
}

std::string value_text(const Flags& flags, const Flag& flag) {
  if (const auto* place = std::get_if<bool Flags::*>(&flag.place))
    return flags.**place ? "true" : "false";
  if (const auto* place = std::get_if<int Flags::*>(&flag.place))
    return fmt::to_string(flags.**place);
  if (const auto* place = std::get_if<int64_t Flags::*>(&flag.place))
    return fmt::to_string(flags.**place);
  if (const auto* place = std::get_if<double Flags::*>(&flag.place))
    return fmt::to_string(flags.**place);
  return '"' + flags.*std::get<std::string Flags::*>(flag.place) + '"';
}

}  // namespace

Flags parse_flags(const std::vector<std::string>& arguments) {
  Flags flags;
  bool only_positionals = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_positionals || argument.size() < 2 || argument[0] != '-') {
      flags.positionals.push_back(argument);
      continue;
    }
    if (argument == "--") {
      only_positionals = true;
      continue;
    }
    std::string name = argument.substr(argument[1] == '-' ? 2 : 1);
    const size_t equals = name.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string value = has_value ? name.substr(equals + 1) : "";
    name = name.substr(0, equals);
    std::replace(name.begin(), name.end(), '-', '_');
    const Flag* flag = find_flag(name);
    if (!flag && !has_value && name.starts_with("no")) {
      flag = find_flag(name.substr(2));
      if (!flag || !is_bool(*flag)) unknown(name);
      set_flag(flags, *flag, "false");
      continue;
    }
    if (!flag) unknown(name);
    if (has_value) {
      set_flag(flags, *flag, value);
    } else if (is_bool(*flag)) {
      set_flag(flags, *flag, "true");
    } else {
      if (i + 1 == arguments.size())
        throw FlagError(fmt::format("flag '--{}' is missing its value", flag->name));
      set_flag(flags, *flag, arguments[++i]);
    }
  }
  if (flags.num_runs < 1) throw FlagError("--num_runs must be at least 1");
  if (flags.testset_idx < 0) throw FlagError("--testset_idx must not be negative");
  if (flags.debug_buffer_size < 0) throw FlagError("--debug_buffer_size must not be negative");
  return flags;
}

std::string flags_help(const std::string& program) {
  std::string text = fmt::format(
      "MPS Executor Runner: runs a program of ExecuTorch that was lowered to MPSBackend.\n\n"
      "  {0} --model_path mv2_mps_bundled.pte --bundled_program\n"
      "  {0} --model_path mv2_mps_bundled.pte --profile --num_runs 10\n\n",
      program);
  const Flags defaults;
  for (const Flag& flag : kFlags) {
    const std::string label = fmt::format("--{}", flag.name);
    text += fmt::format("  {:<28} {}\n  {:<28} default: {}\n", label, flag.doc, "",
                        value_text(defaults, flag));
  }
  text +=
      "\nA flag may be written --flag=value, --flag value, --flag or --noflag, with one or two\n"
      "dashes, and with '-' for '_'. Status: 0 done, 1 failed or not verified, 2 wrong usage.\n";
  return text;
}

}  // namespace anymps::runner
