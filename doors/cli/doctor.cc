// SPDX-License-Identifier: Apache-2.0
// `anymps doctor`: device, instruction sets, libraries, environment; and a quick self-test.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "anymps/anymps.hpp"
#include "commands.h"
#include "session.h"

namespace cli {

namespace {

// A small matmul on a device against the sum written out here.
bool self_test(const std::string& device_name) {
  const amps::Device device = amps::Device::get(device_name);
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, -1, 2, 3, 1};
  const auto y = device.eager("matmul", {device.from_host(amps::DType::f32, {2, 3}, a.data()),
                                         device.from_host(amps::DType::f32, {3, 2}, b.data())})[0];
  return y.to_vector<float>() == std::vector<float>{8, 7, 17, 16};
}

void doctor(bool json) {
  const std::string text = amps::doctor();
  if (json) {
    fmt::print("{}\n", text);
    return;
  }
  const auto report = nlohmann::ordered_json::parse(text);
  fmt::print("anymps {} (ABI {}), built with {}\n", report["version"].get<std::string>(),
             report["abi"].get<int>(), report["compiler"].get<std::string>());
  const int cores = report["cores"];
  const double load = report["load"];
  fmt::print("machine: {} cores, {}{}\n", cores, human_bytes(report["memory_bytes"].get<double>()),
             load < 0 ? "" : fmt::format(", load {:.1f}", load));
  if (load > cores / 2.0) fmt::print("  others use the cores: {}\n", kBusyCoresAdvice);
  fmt::print("ops: {}; ONNX ops: {}; passes: {}\n\ndevices\n", report["ops"].get<int>(),
             report["onnx_ops"].get<int>(), report["passes"].size());
  for (const auto& device : report["devices"]) {
    const std::string name = device["name"];
    std::string state = "self-test passed";
    if (name == "null")
      state = "computes nothing";
    else if (!self_test(name))
      state = "SELF-TEST FAILED";
    const int own = device["ops_with_own_kernels"];
    const std::string kernels =
        own ? fmt::format("own kernels for {} ops", own) : "a kernel for every op";
    fmt::print("  {:<10} {}\n{:13}{}; {}\n", name, device["description"].get<std::string>(), "",
               kernels, state);
  }
  fmt::print("\nenvironment\n");
  for (const auto& variable : report["environment"])
    fmt::print(
        "  {:<20} {:<10} {}{}\n", variable["name"].get<std::string>(),
        variable["value"].get<std::string>().empty() ? "-" : variable["value"].get<std::string>(),
        variable["meaning"].get<std::string>(), variable["set"].get<bool>() ? " (set)" : "");
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "show what this machine and build have");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json] { doctor(*json); });
}

}  // namespace cli
