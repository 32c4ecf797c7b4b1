// SPDX-License-Identifier: Apache-2.0
// What the commands that run a model share: their options, the compiled model and its inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "common/clock.h"
#include "common/npy.h"
#include "common/shown.h"

namespace anymps::cli {

using common::Array;
using common::element;
using common::read_npy;
using common::shown;
using common::to_array;
using common::write_npy;

struct ModelOptions {
  std::string model, device;
  std::string method;  // of a program of ExecuTorch
  int threads = 0, level = 1;
  bool check = false;
  std::string quantize;             // the compile option
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::vector<std::string> dims;    // NAME=EXTENT
  bool random_inputs = false;
  uint64_t seed = 0;

  // A subcommand that takes a model and what goes with it.
  CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& doc);
  // What runs need: add_feeds_to alone where the rest has no meaning.
  void add_inputs_to(CLI::App& app);
  std::vector<CLI::Option*> add_feeds_to(CLI::App& app);
  CLI::Option* add_dims_to(CLI::App& app, const std::string& doc);
};

// A tensor of a result. Elements of a type that NumPy and C++ lack are f32 in `array`.
struct Part {
  std::string name;
  amps::DType dtype;
  Array array;
};

class Session {
 public:
  explicit Session(const ModelOptions& options);

  amps::Device device;
  amps::Executable executable;
  double load_ms = 0;

  // Results that are there already are written to, where they have memory of their own.
  void run(const std::vector<amps::Tensor>& feeds, std::vector<amps::Tensor>& results,
           amps::Profiler* profiler = nullptr) const;
  // The tensors of a result: of a tensor "y" itself, of a list "y.0", "y.1" and so on.
  std::vector<Part> parts(const std::string& name, const amps::Tensor& result) const;

  // Files where given, random numbers for the rest if allowed.
  std::vector<amps::Tensor> feeds(const ModelOptions& options) const;
  std::vector<int64_t> feed_dims(const ModelOptions& options) const;  // one after the other

 private:
  std::map<std::string, int64_t> dims_of(const ModelOptions& options) const;  // those of --dim
  std::vector<int64_t> shape_of(const amps::Value& input,
                                std::map<std::string, int64_t>& dims) const;
};

// A program of ExecuTorch or a bundle of one, by its content; nothing for other files.
std::optional<amps::Program> open_program(const std::string& path);
// The graph of a file; `method` is for programs only.
amps::Graph load_graph(const std::string& path, const std::string& method);

// Wrong usage: a file to write that is the model itself, or whose name says another format.
void check_output(const std::filesystem::path& output, const std::string& model,
                  const std::vector<std::string>& endings);

std::string json_text(const nlohmann::ordered_json& json, int indent = 2);
// Tells whoever measures a program that its runs are not all the same.
void note_state(const amps::Executable& executable);
std::string describe(const amps::Value& value);  // "input: f32[N, 3, 224, 224]", for people
std::string human_bytes(double bytes);
double peak_rss_mb();
// For those who share the machine: threads that meet after each layer wait for the one without a
// core.
inline constexpr const char* kBusyCoresAdvice =
    "--threads 1 may be faster (docs/performance.md, \"Threads\")";
using common::now_ms;

}  // namespace anymps::cli
