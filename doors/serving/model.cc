// SPDX-License-Identifier: Apache-2.0
#include "serving/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "serving/batch.h"
#include "serving/check.h"
#include "serving/compiled.h"
#include "serving/datatype.h"
#include "serving/log.h"

namespace anymps::serving {
namespace {

constexpr size_t kVariants = 8;  // graphs for different sets of optional inputs
constexpr size_t kManyRounds = 3;

std::string describe(const std::vector<amps::Value>& values) {
  std::string text;
  for (const amps::Value& value : values)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", value.name(),
                        amps_dtype_name(amps_value_dtype(value.c())),
                        value.ranked() ? shape_text(value.shape()) : "[?]");
  return text;
}

bool shares_memory(const amps::Device& device) {
  int64_t one = 1;
  char byte = 0;
  amps_tensor* tensor = nullptr;
  const bool shared = amps_tensor_wrap(device.c(), AMPS_U8, 1, &one, nullptr, &byte, nullptr,
                                       nullptr, &tensor) == AMPS_OK;
  amps_tensor_release(tensor);
  return shared;
}

template <typename Fn>
void guard(Item& item, Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    item.fail(error);
  } catch (const amps::Error& error) {
    item.fail(Error(code_of(error.status()), error.what()));
  } catch (const std::exception& error) {
    item.fail(Error(Code::kInternal, error.what()));
  }
}

}  // namespace

void InputList::clear() {
  inputs_.clear();
  pieces_.clear();
  ends_.clear();
}

void InputList::add(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape) {
  inputs_.push_back({name, dtype, shape, {}});
  ends_.push_back(pieces_.size());
}

void InputList::add_piece(const void* data, size_t bytes) {
  pieces_.push_back({data, bytes});
  ends_.back() = pieces_.size();
}

void InputList::finish() {
  size_t begin = 0;
  for (size_t i = 0; i < inputs_.size(); begin = ends_[i++])
    inputs_[i].pieces = std::span(pieces_).subspan(begin, ends_[i] - begin);
}

struct Model::State {
  State(const std::filesystem::path& version_dir, nlohmann::json given, OperatorOptions operators)
      : config(std::move(given)),
        options(std::move(operators)),
        settings(read_files(config, options)),
        device(amps::Device::get(settings.device)),
        file(version_dir, settings, options),
        shared(shares_memory(device)) {}

  // The graph's tensors may still be missing in the configuration.
  static Settings read_files(const nlohmann::json& config, const OperatorOptions& options) {
    nlohmann::json rest = config;
    if (rest.is_object())
      for (const char* field : {"input", "output", "batch_input", "batch_output"})
        rest.erase(field);
    return read_settings(rest, options);
  }

  void load(bool complete, bool reshaped);
  std::shared_ptr<Compiled> variant(uint64_t given);
  std::vector<std::string> fed(uint64_t given) const;
  int threads() const {
    const int most = device.max_threads();
    return settings.threads ? std::min(settings.threads, most) : most;
  }
  Times execute(std::span<Request* const> requests);
  void run(const RunContext& context, std::span<Item* const> items, Times& times);
  size_t run_side_by_side(const RunContext& context, Compiled& compiled,
                          std::span<const std::span<Item* const>> parts, Times& times);
  void run_together(const RunContext& context, Compiled& compiled, std::span<Item* const> items,
                    Times& times);

  nlohmann::json config;
  OperatorOptions options;
  Settings settings;
  amps::Device device;
  ModelFile file;
  bool shared;
  std::optional<amps::Profiler> profiler;
  std::vector<std::string> required_defaults, optional;
  std::shared_ptr<Compiled> whole;  // with all optional inputs
  uint64_t all_given = 0;
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Compiled>> variants;
};

void Model::State::load(bool complete, bool reshaped) {
  const uint64_t start = now_ns();
  file.load_op_libraries();
  bool compiled = false;
  amps::Graph graph = file.load({}, compiled);
  const std::vector<amps::Value> inputs = graph.inputs();
  // Inputs that the configuration names and the graph has a default for.
  std::vector<std::string> names;
  if (config.contains("input") && config["input"].is_array())
    for (const nlohmann::json& input : config["input"])
      if (input.is_object()) names.push_back(input.value("name", ""));
  std::vector<std::string> extra;
  for (const std::string& name : names)
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](const amps::Value& value) { return value.name() == name; }))
      extra.push_back(name);
  if (!extra.empty()) {
    const amps::Graph original = compiled ? file.original() : graph;
    const std::vector<amps::Value> defaults = original.defaults();
    std::erase_if(extra, [&](const std::string& name) {
      return std::none_of(defaults.begin(), defaults.end(),
                          [&](const amps::Value& value) { return value.name() == name; });
    });
    if (!extra.empty()) graph = file.load(extra, compiled);
  }
  if (complete) config = complete_config(std::move(config), graph, options.default_max_batch_size);
  settings = read_settings(config, options);
  check_config(settings, graph);
  for (auto* tensors : {&settings.inputs, &settings.outputs})
    for (TensorSettings& tensor : *tensors)
      if (reshaped && tensor.reshape) {
        tensor.dims = *tensor.reshape;
        tensor.reshape.reset();
      }
  for (const TensorSettings& input : settings.inputs) {
    const bool has_default = std::find(extra.begin(), extra.end(), input.name) != extra.end();
    if (input.optional && !has_default)
      throw Error(Code::kInvalidArgument,
                  "model '" + settings.name + "': input '" + input.name +
                      "' is optional in the configuration, but the model has no default for it");
    if (input.optional)
      optional.push_back(input.name);
    else if (has_default)
      required_defaults.push_back(input.name);
  }
  if (optional.size() > 63 || settings.outputs.size() > 64)
    throw Error(Code::kUnsupported,
                "model '" + settings.name + "' has more than 63 optional inputs or 64 outputs");
  all_given = (uint64_t{1} << optional.size()) - 1;
  if (settings.profile) profiler.emplace();
  whole = std::make_shared<Compiled>(settings, graph, file.compile(graph, extra, compiled, device));
  if (verbose())
    log_line(fmt::format(
        "model '{}': {} on {} ({}), optimization level {}, {} threads, loaded in {:.1f} ms; "
        "inputs {}; outputs {}",
        settings.name, file.path().string(), device.name(), device.description(),
        settings.optimization_level, threads(), static_cast<double>(now_ns() - start) * 1e-6,
        describe(graph.inputs()), describe(graph.outputs())));
}

std::vector<std::string> Model::State::fed(uint64_t given) const {
  std::vector<std::string> names = required_defaults;
  for (size_t i = 0; i < optional.size(); ++i)
    if (given >> i & 1) names.push_back(optional[i]);
  return names;
}

std::shared_ptr<Compiled> Model::State::variant(uint64_t given) {
  if (given == all_given) return whole;
  std::lock_guard lock(mutex);
  std::shared_ptr<Compiled>& found = variants[given];
  if (found) return found;
  try {
    bool compiled = false;
    amps::Graph graph = file.load(fed(given), compiled);
    found = std::make_shared<Compiled>(settings, graph,
                                       file.compile(graph, fed(given), compiled, device));
  } catch (...) {
    variants.erase(given);
    throw;
  }
  std::shared_ptr<Compiled> made = found;
  if (variants.size() > kVariants)
    variants.erase(variants.begin()->first == given ? std::next(variants.begin())
                                                    : variants.begin());
  return made;
}

// If several requests together fail, each runs separately, so that the one at fault fails alone.
void Model::State::run_together(const RunContext& context, Compiled& compiled,
                                std::span<Item* const> items, Times& times) {
  if (items.size() > 1) {
    try {
      run_batch(context, compiled, items, times);
      times.end = now_ns();
      for (Item* item : items) item->finish(times);
      return;
    } catch (const std::exception& error) {
      if (verbose())
        log_line("model '" + settings.name + "': a batch of " + std::to_string(items.size()) +
                 " requests runs one by one: " + error.what());
    }
  }
  for (Item* item : items)
    if (!item->failed) {
      guard(*item, [&] { run_batch(context, compiled, {&item, 1}, times); });
      times.end = now_ns();
      item->finish(times);
    }
}

// Each part on its own thread; returns how many of them, from the first.
size_t Model::State::run_side_by_side(const RunContext& context, Compiled& compiled,
                                      std::span<const std::span<Item* const>> parts, Times& times) {
  const auto width = static_cast<unsigned>(threads());
  // A few that are left over have all threads to themselves afterwards; after many rounds that is
  // not worth the threads' waiting for each other.
  const size_t rounds = parts.size() / width;
  const size_t count = rounds < kManyRounds ? rounds * width : parts.size();
  if (width < 2 || count == 0) return 0;
  std::mutex widening;
  device.parallel(count, threads(), [&](size_t i) {
    std::array<std::byte, 2048> buffer;
    std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
    RunContext own = context;
    own.memory = &memory;
    own.side_by_side = width;
    Times part;
    part.start = times.start;
    run_together(own, compiled, parts[i], part);
    if (!part.compute_start) return;  // failed before it computed
    std::lock_guard lock(widening);
    if (!times.compute_start || part.compute_start < times.compute_start)
      times.compute_start = part.compute_start;
    times.compute_end = std::max(times.compute_end, part.compute_end);
  });
  return count;
}

// Requests that go together, in as many runs as are fastest.
void Model::State::run(const RunContext& context, std::span<Item* const> items, Times& times) {
  std::shared_ptr<Compiled> compiled;
  for (Item* item : items)
    if (!compiled && !item->failed) guard(*item, [&] { compiled = variant(item->given); });
  if (!compiled) return;
  int64_t rows = 0;
  for (const Item* item : items) rows += item->rows;
  const int64_t most = compiled->chunks().choose(rows);
  std::pmr::vector<std::span<Item* const>> parts(context.memory);
  while (!items.empty()) {
    size_t count = 1;
    int64_t taken = items[0]->rows;
    while (count < items.size() && taken + items[count]->rows <= most)
      taken += items[count++]->rows;
    parts.push_back(items.first(count));
    items = items.subspan(count);
  }
  size_t done = 0;
  if (parts.size() > 1 && compiled->chunks().worth_a_thread(most))
    done = run_side_by_side(context, *compiled, parts, times);
  for (; done < parts.size(); ++done) run_together(context, *compiled, parts[done], times);
}

Times Model::State::execute(std::span<Request* const> requests) {
  Times times;
  times.start = now_ns();
  std::array<std::byte, 8192> buffer;
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
  std::pmr::vector<Item> items(&memory);
  items.reserve(requests.size());
  for (Request* request : requests) {
    try {
      if (request->cancelled()) throw Error(Code::kCancelled, "request cancelled");
      items.push_back(check_request(settings, *request, &memory));
    } catch (const Error& error) {
      request->fail(error);
    } catch (const std::exception& error) {
      request->fail(Error(Code::kInternal, error.what()));
    }
  }
  const RunContext context{settings, device, shared, profiler ? profiler->c() : nullptr, &memory};
  std::pmr::vector<Item*> group(&memory);
  std::pmr::vector<bool> taken(items.size(), false, &memory);
  for (size_t i = 0; i < items.size(); ++i) {
    if (taken[i]) continue;
    group.assign(1, &items[i]);
    int64_t rows = items[i].rows;
    for (size_t j = i + 1; j < items.size(); ++j) {
      if (taken[j] || rows + items[j].rows > settings.max_batch_size ||
          !goes_with(settings, *whole, items[i], items[j]))
        continue;
      group.push_back(&items[j]);
      rows += items[j].rows;
      taken[j] = true;
    }
    run(context, group, times);
    times.batch_size += static_cast<uint64_t>(settings.max_batch_size > 0 ? rows : 1);
  }
  times.end = now_ns();
  if (!times.compute_start) times.compute_start = times.compute_end = times.end;
  if (verbose()) {
    amps_cache_stats stats{};
    stats.size = sizeof(stats);
    amps_executable_plan_cache(whole->c(), &stats);
    log_line(
        fmt::format("model '{}': {} requests, {} rows, {:.3f} ms; plan cache: {} of {} shapes, "
                    "{} hits, {} misses",
                    settings.name, requests.size(), times.batch_size,
                    static_cast<double>(times.end - times.start) * 1e-6, stats.entries,
                    stats.capacity, stats.hits, stats.misses));
  }
  return times;
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;

std::shared_ptr<Model> Model::load(const std::filesystem::path& version_dir, nlohmann::json config,
                                   bool complete, OperatorOptions options, bool reshaped) {
  try {
    auto state = std::make_unique<State>(version_dir, std::move(config), std::move(options));
    state->load(complete, reshaped);
    return std::shared_ptr<Model>(new Model(std::move(state)));
  } catch (const amps::Error& error) {
    throw Error(code_of(error.status()), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(Code::kUnavailable, error.what());
  } catch (const nlohmann::json::exception& error) {
    throw Error(Code::kInvalidArgument, std::string("model configuration: ") + error.what());
  }
}

const nlohmann::json& Model::config() const { return state_->config; }
const Settings& Model::settings() const { return state_->settings; }
const amps::Device& Model::device() const { return state_->device; }

std::string Model::profile() const { return state_->profiler ? state_->profiler->text() : ""; }

Times Model::execute(std::span<Request* const> requests) {
  try {
    return state_->execute(requests);
  } catch (const std::exception& error) {  // out of memory
    for (Request* request : requests) request->fail(Error(Code::kInternal, error.what()));
    return {};
  }
}

}  // namespace anymps::serving
