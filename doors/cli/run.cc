// SPDX-License-Identifier: Apache-2.0
// `anymps run`: one inference, with what came out, how long it took, and on which kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.h"
#include "options.h"
#include "session.h"

namespace anymps::cli {

namespace {

using Json = nlohmann::ordered_json;

struct RunOptions : ModelOptions {
  size_t top = 0;
  bool profile = false, json = false;
  std::string output_dir;
};

std::vector<int64_t> largest(const Array& array, int64_t first, int64_t count, int64_t k) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), first);
  k = std::min(k, count);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](int64_t a, int64_t b) { return element(array, a) > element(array, b); });
  order.resize(k);
  return order;
}

Json summary(const Part& part, size_t top) {
  const Array& array = part.array;
  Json json{{"dtype", amps::name(part.dtype)}, {"shape", array.shape}};
  if (array.dtype == amps::DType::string) {
    const auto shown = std::min<int64_t>(std::ssize(array.strings), 10);
    json["strings"] =
        std::vector<std::string>(array.strings.begin(), array.strings.begin() + shown);
    return json;
  }
  double low = INFINITY, high = -INFINITY, sum = 0;
  const size_t count = array.count();
  for (size_t i = 0; i < count; ++i) {
    const double value = element(array, i);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  if (count) json.update({{"min", low}, {"max", high}, {"mean", sum / static_cast<double>(count)}});
  if (top && count && !array.shape.empty()) {
    Json classes = Json::array();
    for (const int64_t i : largest(array, 0, array.shape.back(), top))
      classes.push_back({{"class", i}, {"score", element(array, i)}});
    json["top"] = classes;
  }
  return json;
}

void print_text(const Json& result, const RunOptions& options, const std::string& table) {
  const std::string model = shown(std::filesystem::path(options.model).filename().string());
  if (result["stateful"].get<bool>())
    fmt::print("{} on {}: {:.2f} ms (load {:.0f} ms; run once, since it keeps state)\n", model,
               result["device"].get<std::string>(), result["run_ms"].get<double>(),
               result["load_ms"].get<double>());
  else
    fmt::print("{} on {}: {:.2f} ms (load {:.0f} ms, first run {:.2f} ms)\n", model,
               result["device"].get<std::string>(), result["run_ms"].get<double>(),
               result["load_ms"].get<double>(), result["first_run_ms"].get<double>());
  for (const auto& [name, output] : result["outputs"].items()) {
    if (output.contains("items")) {
      fmt::print("  {}: nothing\n", shown(name));
      continue;
    }
    fmt::print("  {}: {}{}", shown(name), output["dtype"].get<std::string>(),
               output["shape"].dump());
    if (output.contains("strings")) fmt::print("  {}", json_text(output["strings"], -1));
    if (output.contains("min"))
      fmt::print("  min {:.6g}  max {:.6g}  mean {:.6g}", output["min"].get<double>(),
                 output["max"].get<double>(), output["mean"].get<double>());
    fmt::print("\n");
    if (!output.contains("top")) continue;
    for (const auto& entry : output["top"])
      fmt::print("    class {:>5}  {:.6f}\n", entry["class"].get<size_t>(),
                 entry["score"].get<double>());
  }
  fmt::print("memory: device peak {}, packed weights {}, process peak {:.1f} MiB\n",
             human_bytes(result["memory"]["peak_allocated"].get<double>()),
             human_bytes(result["memory"]["packed_weights"].get<double>()),
             result["peak_rss_mb"].get<double>());
  std::string kernels;
  for (const auto& [kernel, count] : result["kernels"].items())
    kernels += fmt::format("{}{} x{}", kernels.empty() ? "" : ", ", kernel, count.get<int>());
  fmt::print("kernels: {}\n", kernels);
  if (!table.empty()) fmt::print("\n{}", table);
}

// A list "y" has an item "y.0", and there may be an output of that name.
std::string new_name(const Json& outputs, const std::string& name) {
  std::string unused = name;
  for (int i = 2; outputs.contains(unused); ++i) unused = fmt::format("{}~{}", name, i);
  return unused;
}

// A name of a file for each name of an output, another for another. What is not fit for a file
// name is "%" and two hexadecimal digits; so are "%" and "~", and a "." in front. A long name is
// its start, "~" and a checksum of all of it; an empty one is "%".
std::string file_name(const std::string& name) {
  constexpr size_t kLongest = 200;  // the system takes 255, with the ending
  std::string file;
  for (size_t i = 0; i < name.size();) {
    uint32_t point = 0;
    const std::string_view rest = std::string_view(name).substr(i);
    const size_t bytes = common::character_bytes(rest, point);
    const bool fit = bytes && !common::is_control(point) && point != '/' && point != '%' &&
                     point != '~' && !(point == '.' && i == 0);
    for (const char byte : rest.substr(0, bytes ? bytes : 1))
      file += fit ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    i += bytes ? bytes : 1;
  }
  if (file.empty()) return "%";
  if (file.size() <= kLongest) return file;
  uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : name) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  size_t cut = kLongest - 20;
  while (cut > 0 && (static_cast<unsigned char>(file[cut]) & 0xc0) == 0x80) --cut;
  return fmt::format("{}~{:016x}", file.substr(0, cut), sum);
}

void run(const RunOptions& options) {
  const Session session(options);
  const std::vector<amps::Tensor> feeds = session.feeds(options);
  // What is shown and written is what the first run gave. The others are there for the clock, and
  // left out where a run changes what the next one finds.
  const bool stateful = session.executable.stateful();
  amps::Profiler profiler;
  std::vector<amps::Tensor> results, again;
  const auto timed = [&](std::vector<amps::Tensor>& to, amps::Profiler* with) {
    const double start = now_ms();
    session.run(feeds, to, with);
    return now_ms() - start;
  };
  const double first = timed(results, stateful ? &profiler : nullptr);
  const double second = stateful ? first : timed(again, nullptr);
  if (!stateful) timed(again, &profiler);

  const amps_memory_stats memory = session.device.memory();
  Json result{{"model", options.model}, {"device", session.device.name()},
              {"stateful", stateful},   {"load_ms", session.load_ms},
              {"first_run_ms", first},  {"run_ms", second}};
  const std::vector<amps::Value> outputs = session.executable.outputs();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::vector<Part> parts = session.parts(outputs[i].name(), results[i]);
    if (parts.empty())
      result["outputs"][new_name(result["outputs"], outputs[i].name())] = {{"items", 0}};
    for (const Part& part : parts) {
      const std::string name = new_name(result["outputs"], part.name);
      result["outputs"][name] = summary(part, options.top);
      if (options.output_dir.empty()) continue;
      std::filesystem::create_directories(options.output_dir);
      write_npy(options.output_dir + "/" + file_name(name) + ".npy", part.array);
    }
  }
  result["memory"] = {{"allocated", memory.allocated},
                      {"peak_allocated", memory.peak_allocated},
                      {"packed_weights", memory.packed_weights}};
  result["peak_rss_mb"] = peak_rss_mb();
  const Json profile = Json::parse(profiler.text("json"));
  std::map<std::string, int> kernels;
  for (const auto& kernel : profile["kernels"])
    kernels[kernel["kernel"]] += kernel["calls"].get<int>();
  result["kernels"] = kernels;
  if (options.json) {
    if (options.profile) result["profile"] = profile;
    fmt::print("{}\n", json_text(result));
  } else {
    print_text(result, options, options.profile ? profiler.text("table") : "");
  }
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = options->add_command(app, "run", "run a model once and show its outputs");
  options->add_inputs_to(*command);
  command->add_option("--top", options->top, "show the K largest classes of each output")
      ->transform(whole_number(0, 1'000'000'000));
  command
      ->add_option("-o,--output-dir", options->output_dir,
                   "write each output as NAME.npy, types that NumPy lacks as f32; a '/' in NAME is "
                   "%2F, and so are other characters that no file name should have")
      ->check(not_empty());
  command->add_flag("--profile", options->profile, "show the time of each kernel");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace anymps::cli
