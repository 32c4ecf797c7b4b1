// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/clock.h"
#include "common/npy.h"
#include "print.h"
#include "profile.h"

namespace anymps::runner {

namespace {

using common::now_ms;

[[noreturn]] void fail(const std::string& message) {
  throw amps::Error(AMPS_INVALID_ARGUMENT, message);
}

std::string first_method(const amps::Program& program, const Flags& flags) {
  const std::vector<std::string> methods = program.methods();
  if (methods.empty()) fail(flags.model_path + ": the program has no methods");
  if (flags.method_name.empty()) return methods[0];
  if (std::find(methods.begin(), methods.end(), flags.method_name) != methods.end())
    return flags.method_name;
  fail(fmt::format("{} has no method '{}'; it has: {}", flags.model_path, flags.method_name,
                   fmt::join(methods, ", ")));
}

amps::CompileOptions compile_options(const Flags& flags) {
  amps::CompileOptions options;
  options.threads = std::max(flags.cpu_threads, 0);
  return options;
}

// What upstream feeds when there is no bundle.
amps::Tensor ones(const amps::Device& device, const amps::Value& input,
                  const std::vector<int64_t>& shape) {
  const amps::DType dtype = input.dtype();
  size_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<char> data(count * amps::size_of(dtype));
  auto fill = [&](auto one) {
    for (size_t at = 0; at + sizeof(one) <= data.size(); at += amps::size_of(dtype))
      std::memcpy(data.data() + at, &one, sizeof(one));
  };
  switch (dtype) {
    case amps::DType::f32:
    case amps::DType::c64:
      fill(1.0f);
      break;
    case amps::DType::f64:
      fill(1.0);
      break;
    case amps::DType::f16:
      fill(uint16_t{0x3c00});
      break;
    case amps::DType::bf16:
      fill(uint16_t{0x3f80});
      break;
    default:
      fill(char{1});  // integers and bools: the lowest byte comes first
  }
  return device.from_host(dtype, shape, data.data());
}

// Of the method's inputs; where a shape is dynamic, the file tells how large it may be.
std::vector<std::vector<int64_t>> largest_shapes(const amps::Program& program,
                                                 const std::string& method) {
  std::vector<std::vector<int64_t>> shapes;
  const auto about = nlohmann::json::parse(program.text("json"));
  for (const auto& entry : about["methods"]) {
    if (entry["name"] != method) continue;
    for (const auto& input : entry["inputs"])
      if (input["kind"] == "Tensor") shapes.push_back(input["sizes"]);
  }
  return shapes;
}

amps::Tensor copy_of(const amps::Device& device, const amps::Tensor& tensor) {
  return common::to_tensor(device, common::to_array(tensor));
}

void write_file(const std::string& path, const char* flag, const void* data, size_t bytes) {
  try {
    amps::write_file(path, {std::string_view(static_cast<const char*>(data), bytes)});
  } catch (const amps::Error& error) {
    throw amps::Error(error.status(),
                      fmt::format("{}; --{} names another place", error.what(), flag));
  }
}

}  // namespace

Session::Session(const Flags& flags)
    : flags_(flags),
      start_ms_(now_ms()),
      device_(amps::Device::get(flags.device)),
      program_(amps::Program::open(flags.model_path)),
      method_(first_method(program_, flags)),
      delegate_calls_(delegate_calls(program_, method_)),
      graph_(program_.graph(method_)),
      executable_(device_.compile(graph_, compile_options(flags))),
      load_ms_(now_ms() - start_ms_) {
  fmt::print("Model file {} is loaded.\n", flags.model_path);
  fmt::print("Using method {}\n", method_);
  fmt::print("Method loaded.\n");
  tolerance_ = tolerance_of(program_, method_);
  if (flags.rtol >= 0) tolerance_.rtol = flags.rtol;
  if (flags.atol >= 0) {
    tolerance_.atol = flags.atol;
    tolerance_.scaled = false;
  }
}

void Session::prepare_inputs() {
  if (flags_.bundled_program) {
    fmt::print("Loading bundled program...\n");
    const size_t tests = program_.test_count(method_);
    const size_t test = flags_.testset_idx;
    if (tests == 0)
      fail(
          fmt::format("{} holds no test cases for method '{}': export it with --bundled, or run it "
                      "without --bundled_program (inputs are ones then)",
                      flags_.model_path, method_));
    if (test >= tests)
      fail(fmt::format("--testset_idx={}: {} has {} test cases for method '{}', numbered from 0",
                       test, flags_.model_path, tests, method_));
    inputs_ = program_.test_inputs(test, device_, method_);
    expected_ = program_.test_outputs(test, device_, method_);
    if (expected_.empty())
      fail(
          fmt::format("{} expects no outputs of test case {}: there is nothing to verify; run it "
                      "without --bundled_program",
                      flags_.model_path, test));
  } else {
    fmt::print("Loading non-bundled program...\n");
    const auto shapes = largest_shapes(program_, method_);
    const auto values = executable_.inputs();
    for (size_t i = 0; i < values.size(); ++i)
      inputs_.push_back(ones(device_, values[i], shapes.at(i)));
  }
  fmt::print("Inputs prepared.\n");
}

// Buffers of the program keep what a run writes into them. Every run begins with those of a fresh
// program: its outputs are what a bundle expects, and those that a first run gives.
void Session::forget_state() {
  const std::vector<amps::Value> values = graph_.values();
  const bool has_state = std::any_of(values.begin(), values.end(), [](const amps::Value& value) {
    return value.op() == "assign_variable";
  });
  if (has_state) executable_ = device_.compile(graph_, compile_options(flags_));
}

void Session::run_once(int number, bool measured) {
  if (number > 0) forget_state();
  std::vector<amps::Tensor> feeds;
  for (const amps::Tensor& input : inputs_) feeds.push_back(copy_of(device_, input));
  const double start = now_ms();
  executable_.run(feeds, results_, nullptr, recording() ? &profiler_ : nullptr);
  const double took = now_ms() - start;
  if (measured) times_ms_.push_back(took);
  if (flags_.profile) fmt::print("[Run {}] Inference time: {:.3f} milliseconds\n", number, took);
  if (!flags_.bundled_program || !mismatch_.empty()) return;
  const std::string text = difference(results_, expected_, tolerance_);
  if (!text.empty()) mismatch_ = fmt::format("run {}, {}", number, text);
}

std::vector<DebugEvent> Session::outputs_as_events() const {
  std::vector<DebugEvent> events;
  for (const amps::Tensor& result : results_)
    events.push_back({"", common::to_array(result), true});
  return events;
}

std::vector<DebugEvent> Session::intermediate_outputs() const {
  amps::Graph graph = program_.graph(method_);
  // An ETRecord knows nodes. Outputs of the program have names of their own.
  std::map<std::string, std::string> nodes;
  const auto about = nlohmann::json::parse(graph.text("json"));
  for (const auto& node : about["nodes"])
    for (const auto& output : node["outputs"]) nodes[output["name"]] = node["name"];
  std::vector<amps::Value> values;
  std::vector<std::string> names;
  for (const amps::Value& value : graph.values()) {
    if (value.op().empty() || value.container() != AMPS_TENSOR) continue;
    values.push_back(value);
    names.push_back(nodes.at(value.name()));
  }
  graph.outputs(values);
  amps::CompileOptions options = compile_options(flags_);
  options.optimization_level = 0;
  const std::vector<amps::Tensor> results = device_.compile(graph, options).run(inputs_);
  std::vector<DebugEvent> events;
  for (size_t i = 0; i < results.size(); ++i)
    events.push_back(
        {names[i], common::to_array(results[i]), false, instruction_of(names[i], delegate_calls_)});
  return events;
}

void Session::report_times() const {
  if (!flags_.profile) return;
  const double sum = std::accumulate(times_ms_.begin(), times_ms_.end(), 0.0);
  fmt::print("Average inference time: {:.2f} milliseconds\n",
             sum / static_cast<double>(times_ms_.size()));
  fmt::print("Load time: {:.3f} milliseconds\n", load_ms_);
  fmt::print("\n{}\n", profiler_.text("table"));
}

bool Session::recording() const {
  return flags_.profile || dumping() || flags_.was_given("etdump_path") ||
         flags_.was_given("prof_result_path");
}

bool Session::dumping() const { return flags_.dump_outputs || flags_.dump_intermediate_outputs; }

void Session::write_files() {
  if (flags_.was_given("prof_result_path")) {
    const std::string trace = profiler_.text("trace");
    write_file(flags_.prof_result_path, "prof_result_path", trace.data(), trace.size());
    fmt::print("Trace written to {}: ui.perfetto.dev opens it.\n", flags_.prof_result_path);
  }
  if (!dumping() && !flags_.profile && !flags_.was_given("etdump_path")) return;
  if (dumping()) blocks_.back().debug = outputs_as_events();
  if (flags_.dump_intermediate_outputs)
    blocks_.push_back({"Execute", blocks_.back().bundled_input, {}, intermediate_outputs()});
  const Etdump dump = make_etdump(blocks_, flags_.debug_buffer_size);
  write_file(flags_.etdump_path, "etdump_path", dump.file.data(), dump.file.size());
  fmt::print("ETDump written to {}\n", flags_.etdump_path);
  if (!dumping()) return;
  write_file(flags_.debug_output_path, "debug_output_path", dump.debug_buffer.data(),
             dump.debug_buffer.size());
  fmt::print("Debug buffer written to {}\n", flags_.debug_output_path);
}

bool Session::run() {
  prepare_inputs();
  const auto load_ns = static_cast<int64_t>(load_ms_ * 1e6);
  blocks_.push_back({"Default", -1, {{"Program::load_method", "", "", 0, load_ns}}, {}});
  const auto collect = [&] {
    const int bundled = flags_.bundled_program ? flags_.testset_idx : -1;
    for (RunBlock& block : run_blocks(profiler_, bundled, load_ns, delegate_calls_))
      blocks_.push_back(std::move(block));
  };
  int number = 0;
  if (!flags_.skip_warmup) {
    run_once(number++, false);
    collect();
    profiler_.reset();  // the table and the trace are of the measured runs
  }
  for (int i = 0; i < flags_.num_runs; ++i) run_once(number++, true);
  collect();
  report_times();
  fmt::print("Model executed successfully.\n");
  if (flags_.print_output)
    for (size_t i = 0; i < results_.size(); ++i)
      fmt::print("Output {}: {}\n", i, tensor_text(common::to_array(results_[i])));
  write_files();
  if (!flags_.bundled_program) return true;
  if (!mismatch_.empty()) {
    fmt::print(stderr, "Bundle verification failed (test case {}): {}\n", flags_.testset_idx,
               mismatch_);
    return false;
  }
  const auto compared = std::count_if(expected_.begin(), expected_.end(),
                                      [](const auto& tensor) { return !!tensor; });
  if (compared < std::ssize(results_))
    fmt::print("The bundle expects {} of the {} outputs: the others were not compared.\n", compared,
               results_.size());
  fmt::print("Model verified successfully.\n");
  return true;
}

}  // namespace anymps::runner
