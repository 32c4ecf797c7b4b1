// SPDX-License-Identifier: Apache-2.0
// What the commands that run a model share: their options, the compiled model and its inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "npy.h"

namespace cli {

struct ModelOptions {
  std::string model, device;
  int threads = 0, level = 1;
  bool check = false;
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::vector<std::string> dims;    // NAME=EXTENT
  bool random_inputs = false;
  uint64_t seed = 0;

  void add_to(CLI::App& app);
  void add_inputs_to(CLI::App& app);
};

class Session {
 public:
  explicit Session(const ModelOptions& options);

  amps::Device device;
  amps::Executable executable;
  double load_ms = 0;

  // Files where given, random numbers for the rest if allowed.
  std::vector<amps::Tensor> feeds(const ModelOptions& options) const;
  std::vector<int64_t> feed_dims(const ModelOptions& options) const;  // one after the other

 private:
  std::vector<int64_t> shape_of(const amps::Value& input,
                                std::map<std::string, int64_t>& dims) const;
};

std::string describe(const amps::Value& value);  // "input: f32[N, 3, 224, 224]"
std::string human_bytes(double bytes);
double peak_rss_mb();
double now_ms();

}  // namespace cli
