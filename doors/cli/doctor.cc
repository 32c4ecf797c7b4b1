// SPDX-License-Identifier: Apache-2.0
// `anymps doctor`: device, cores, instruction sets, libraries, environment; and a self-test of each
// dtype on each device that computes; exit code 1 if one fails.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "anymps/anymps.hpp"
#include "commands.h"
#include "self_test.h"
#include "session.h"

namespace anymps::cli {

namespace {

using Json = nlohmann::ordered_json;

// Of each device that computes: {"f32": "ok", …}. Returns the tests that failed, for people.
std::vector<std::string> test_devices(Json& report) {
  std::vector<std::string> failed;
  for (Json& device : report["devices"]) {
    const std::string name = device["name"];
    if (name == "null") continue;
    for (const SelfTest& test : self_test(amps::Device::get(name))) {
      device["self_test"][test.dtype] = test.problem.empty() ? "ok" : test.problem;
      if (!test.problem.empty()) failed.push_back(fmt::format("{} on {}", test.dtype, name));
    }
  }
  return failed;
}

void print_device(const Json& device) {
  const int own = device["ops_with_own_kernels"];
  fmt::print("  {:<10} {}\n{:13}{}\n", device["name"].get<std::string>(),
             device["description"].get<std::string>(), "",
             own ? fmt::format("own kernels for {} ops", own) : "a kernel for every op");
  if (!device.contains("self_test")) {
    fmt::print("{:13}computes nothing\n", "");
    return;
  }
  std::string passed;
  for (const auto& [dtype, result] : device["self_test"].items())
    if (result == "ok") passed += (passed.empty() ? "" : ", ") + dtype;
  fmt::print("{:13}self-test ok: {}\n", "", passed);
  for (const auto& [dtype, result] : device["self_test"].items())
    if (result != "ok")
      fmt::print("{:13}self-test FAILED: {}: {}\n", "", dtype, shown(result.get<std::string>()));
}

void print_machine(const Json& report) {
  const double load = report["load"], quota = report["cpu_quota"],
               others = report["busy_elsewhere"];
  const int usable = report["usable_cores"];
  fmt::print("machine: {} cores, {}{}\n", report["cores"].get<int>(),
             human_bytes(report["memory_bytes"].get<double>()),
             load < 0 ? "" : fmt::format(", load {:.1f}", load));
  fmt::print("cores for this process: {} (affinity {}, {} physical, quota {}){}\n", usable,
             report["affinity"].get<int>(), report["physical_cores"].get<int>(),
             quota > 0 ? fmt::format("{:.4g}", quota) : "none",
             others < 0 ? "" : fmt::format(", others keep {:.1f} busy", others));
  if (others > usable / 2.0) fmt::print("  others use the cores: {}\n", kBusyCoresAdvice);
  for (const Json& device : report["devices"])
    if (const int threads = device["threads"]; threads > usable)
      fmt::print("  {} uses {} threads, more than can run at once: ANYMPS_NUM_THREADS={}\n",
                 device["name"].get<std::string>(), threads, usable);
}

void print_tuning(const Json& tuning) {
  const std::string file = tuning["file"], problem = tuning["problem"];
  const std::string held = problem.empty()
                               ? fmt::format("{} choices", tuning["choices"].get<size_t>())
                               : "not used: " + problem;
  fmt::print("\ntuning: {}{}\n", tuning["on"].get<bool>() ? "on" : "off",
             file.empty() ? ", no file" : fmt::format(", {} ({})", shown(file), shown(held)));
}

void print_report(const Json& report) {
  fmt::print("anymps {} (ABI {}), built with {}\n", report["version"].get<std::string>(),
             report["abi"].get<int>(), report["compiler"].get<std::string>());
  print_machine(report);
  fmt::print("ops: {}; ONNX ops: {}; passes: {}\n\ndevices\n", report["ops"].get<int>(),
             report["onnx_ops"].get<int>(), report["passes"].size());
  for (const Json& device : report["devices"]) print_device(device);
  fmt::print("\nenvironment\n");
  for (const Json& variable : report["environment"]) {
    const std::string value = shown(variable["value"].get<std::string>());
    fmt::print("  {:<20} {:<10} {}{}\n", variable["name"].get<std::string>(),
               value.empty() ? "-" : value, variable["meaning"].get<std::string>(),
               variable["set"].get<bool>() ? " (set)" : "");
  }
  print_tuning(report["tuning"]);
}

void doctor(bool json) {
  Json report = Json::parse(amps::doctor());
  const std::vector<std::string> failed = test_devices(report);
  if (json)
    fmt::print("{}\n", json_text(report));
  else
    print_report(report);
  if (!failed.empty())
    throw amps::Error(AMPS_INTERNAL,
                      fmt::format("[doctor] the self-test failed for {}", fmt::join(failed, ", ")));
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("doctor", "show what this machine and build have, and test each dtype");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json] { doctor(*json); });
}

}  // namespace anymps::cli
