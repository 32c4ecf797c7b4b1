// SPDX-License-Identifier: Apache-2.0
#include "server/observation/trace.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "server/observation/tensor_text.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

// Traces are held up to this many bytes, then appended to the file.
constexpr size_t kHeldBytes = size_t{1} << 20;

struct Level {
  bool timestamps = false, tensors = false;
  bool on() const { return timestamps || tensors; }
};

struct Values {
  Level level;
  uint32_t rate = 1000;
  int32_t count = -1;  // -1: no limit
  uint32_t frequency = 0;
};

struct Overrides {
  std::optional<Level> level;
  std::optional<uint32_t> rate, frequency;
  std::optional<int32_t> count;
};

Values over(Values values, const Overrides& changes) {
  if (changes.level) values.level = *changes.level;
  if (changes.rate) values.rate = *changes.rate;
  if (changes.count) values.count = *changes.count;
  if (changes.frequency) values.frequency = *changes.frequency;
  return values;
}

template <typename Words>
std::optional<Level> parse_level(const Words& words) {
  Level level;
  bool known = false;
  for (const std::string& word : words) {
    if (word == "OFF") {
      if (words.size() > 1) refuse("Expect only one trace level 'OFF' is specified");
      known = true;
    } else if (word == "TIMESTAMPS") {
      level.timestamps = known = true;
    } else if (word == "TENSORS") {
      level.tensors = known = true;
    }
  }
  return known ? std::optional(level) : std::nullopt;  // as Triton: other words change nothing
}

uint32_t parse_unsigned(std::string_view name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range || value > UINT32_MAX)
    refuse(fmt::format("Unable to parse '{}', value is out of range [ 0, {} ], got: {}", name,
                       UINT32_MAX, text));
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    refuse(fmt::format("Unable to parse '{}', got: {}", name, text));
  return static_cast<uint32_t>(value);
}

int32_t parse_count(const std::string& text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    refuse(fmt::format("Unable to parse 'trace_count', value is out of range [ -1, {} ], got: {}",
                       INT32_MAX, text));
  if (error != std::errc() || end != text.data() + text.size())
    refuse(fmt::format("Unable to parse 'trace_count', got: {}", text));
  if (value < -1)
    refuse(fmt::format("Unable to parse 'trace_count'. Expecting value >= -1, got:{}", text));
  return value;
}

// Changes `values` as a request says; a setting without values is taken out.
void read(const inference::TraceSettingRequest& request, Overrides& values) {
  for (const auto& [name, setting] : request.settings()) {
    const auto& words = setting.value();
    const auto only = [&words, &setting_name = name]() -> const std::string& {
      if (words.size() != 1) refuse(fmt::format("expect only 1 value for '{}'", setting_name));
      return words[0];
    };
    if (name == "trace_file") {
      throw Error(Code::kUnsupported,
                  "trace file location can not be updated through network protocol");
    } else if (name == "trace_level") {
      if (words.empty())
        values.level.reset();
      else if (const std::optional<Level> level = parse_level(words))
        values.level = level;
    } else if (name == "trace_rate") {
      values.rate = words.empty() ? std::nullopt : std::optional(parse_unsigned(name, only()));
    } else if (name == "trace_count") {
      values.count = words.empty() ? std::nullopt : std::optional(parse_count(only()));
    } else if (name == "log_frequency") {
      values.frequency = words.empty() ? std::nullopt : std::optional(parse_unsigned(name, only()));
    }
  }
}

// The settings of a model, or the global ones, with the traces that they sampled.
struct Scope {
  Overrides changes;
  uint64_t requests = 0;
  int64_t left = -1;  // traces still to take; -1: no limit
  std::string held;   // JSON objects, with commas between
  uint32_t held_traces = 0;
};

}  // namespace

struct Tracer::State {
  mutable std::mutex mutex;
  Values start;  // as the command line says
  std::string file;
  Scope global;
  std::map<std::string, Scope> models;
  std::atomic<uint64_t> last_id{0};
  uint64_t file_index = 0;
  bool file_begun = false;

  Values values(const std::string& model) const {
    const Values common = over(start, global.changes);
    const auto found = model.empty() ? models.end() : models.find(model);
    return found == models.end() ? common : over(common, found->second.changes);
  }
  Scope& scope(const std::string& name) {
    const auto found = name.empty() ? models.end() : models.find(name);
    return found == models.end() ? global : found->second;
  }
  bool any() const {
    bool on = values("").level.on();
    for (const auto& [model, scope] : models) on = on || values(model).level.on();
    return on;
  }

  // To a separate file with a number, or to the end of the one file.
  void write(Scope& scope, bool numbered) {
    if (scope.held.empty()) return;
    const std::string held = std::exchange(scope.held, {});
    scope.held_traces = 0;
    if (file.empty()) return;
    if (numbered) {
      std::ofstream(fmt::format("{}.{}", file, file_index++), std::ios::trunc)
          << '[' << held << ']';
    } else if (!file_begun) {
      std::ofstream(file, std::ios::trunc) << '[' << held << ']';
      file_begun = true;
    } else {
      std::fstream stream(file, std::ios::in | std::ios::out);
      stream.seekp(-1, std::ios::end);
      stream << ',' << held << ']';
    }
  }
  void flush(Scope& scope, const std::string& name) { write(scope, values(name).frequency != 0); }
};

Tracer::Tracer(const Options& options) : state_(std::make_unique<State>()) {
  Values& values = state_->start;
  for (const auto& [key, value] : options.trace_config) {
    if (key == "level") {
      std::vector<std::string> words;
      std::string word;
      for (const char c : value + ",")
        if (c == ',')
          words.push_back(std::exchange(word, {}));
        else
          word += c;
      const std::optional<Level> level = parse_level(words);
      if (!level)
        refuse("--trace-config: level is OFF, TIMESTAMPS or TENSORS, not '" + value + "'");
      values.level = *level;
    } else if (key == "rate") {
      values.rate = parse_unsigned("trace_rate", value);
    } else if (key == "count") {
      values.count = parse_count(value);
    } else if (key == "log-frequency") {
      values.frequency = parse_unsigned("log_frequency", value);
    } else if (key == "file") {
      state_->file = value;
    }
  }
  state_->global.left = values.count;
  active_ = state_->any();
}

Tracer::~Tracer() {
  const std::lock_guard lock(state_->mutex);
  for (auto& [model, scope] : state_->models) state_->flush(scope, model);
  state_->flush(state_->global, "");
}

inference::TraceSettingResponse Tracer::settings(const std::string& model) const {
  Values values;
  {
    const std::lock_guard lock(state_->mutex);
    values = state_->values(model);
  }
  inference::TraceSettingResponse response;
  auto& settings = *response.mutable_settings();
  auto& level = settings["trace_level"];
  if (!values.level.on()) level.add_value("OFF");
  if (values.level.timestamps) level.add_value("TIMESTAMPS");
  if (values.level.tensors) level.add_value("TENSORS");
  settings["trace_rate"].add_value(std::to_string(values.rate));
  settings["trace_count"].add_value(std::to_string(values.count));
  settings["log_frequency"].add_value(std::to_string(values.frequency));
  settings["trace_file"].add_value(state_->file);
  settings["trace_mode"].add_value("triton");
  return response;
}

inference::TraceSettingResponse Tracer::set(const inference::TraceSettingRequest& request) {
  const std::string& model = request.model_name();
  if (!request.settings().empty()) {
    const std::lock_guard lock(state_->mutex);
    Overrides changes;
    if (model.empty())
      changes = state_->global.changes;
    else if (const auto found = state_->models.find(model); found != state_->models.end())
      changes = found->second.changes;
    read(request, changes);  // throws before anything is changed
    const Values below = model.empty() ? state_->start : state_->values("");
    if (state_->file.empty() && over(below, changes).level.on())
      refuse("Attempting to set invalid trace setting :trace file name is not given");
    Scope& scope = model.empty() ? state_->global : state_->models[model];
    state_->flush(scope, model);
    scope.changes = changes;
    scope.requests = 0;
    scope.left = state_->values(model).count;
    active_ = state_->any();
  }
  return settings(model);
}

void Tracer::choose(Request& request) {
  const std::lock_guard lock(state_->mutex);
  const bool own = state_->models.count(request.model) != 0;
  const std::string name = own ? request.model : "";
  Scope& scope = state_->scope(name);
  const Values values = state_->values(name);
  if (!values.level.on() || values.rate == 0 || scope.left == 0) return;
  if (++scope.requests % values.rate != 0) return;
  if (scope.left > 0) --scope.left;
  request.trace = std::make_shared<Trace>();
  request.trace->id = ++state_->last_id;
  request.trace->timestamps = values.level.timestamps;
  request.trace->tensors = values.level.tensors;
  request.trace->setting = name;
}

void Tracer::finish(const Request& request, const std::string& version, const Response* response) {
  if (!request.trace) return;
  const Trace& trace = *request.trace;
  std::string text;
  const auto add = [&](nlohmann::ordered_json object) {
    text.append(text.empty() ? "" : ",")
        .append(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  nlohmann::ordered_json head{{"id", trace.id}, {"model_name", request.model}};
  int64_t number = request.version;
  std::from_chars(version.data(), version.data() + version.size(), number);
  head["model_version"] = number;
  if (!request.id.empty()) head["request_id"] = request.id;
  add(std::move(head));
  const auto time = [&](const char* name, uint64_t ns) {
    if (trace.timestamps && ns != 0)
      add({{"id", trace.id}, {"timestamps", {{{"name", name}, {"ns", ns}}}}});
  };
  const auto tensor = [&](const char* activity, const std::string& name, amps_dtype dtype,
                          const std::vector<int64_t>& shape, const std::string& data) {
    std::string dims = serving::shape_text(shape);
    add({{"id", trace.id},
         {"activity", activity},
         {"tensor",
          {{"name", name},
           {"data", data},
           {"shape", dims.substr(1, dims.size() - 2)},
           {"dtype", std::string(serving::datatype_name(dtype))}}}});
  };
  const Timestamps& times = request.times;
  time("REQUEST_START", times.received);
  time("QUEUE_START", times.queued);
  if (trace.tensors)
    for (const InputTensor& input : request.inputs)
      tensor("TENSOR_QUEUE_INPUT", input.name, input.dtype, input.shape,
             tensor_text(input.dtype, input.buffers));
  time("COMPUTE_START", times.compute_start);
  time("COMPUTE_INPUT_END", times.compute_input_end);
  time("COMPUTE_OUTPUT_START", times.compute_output_start);
  if (trace.tensors && response && !response->error)
    for (const OutputTensor& output : response->outputs)
      tensor("TENSOR_BACKEND_OUTPUT", output.name, output.dtype, output.shape,
             tensor_text(output.dtype, {&output.data, 1}));
  time("COMPUTE_END", times.compute_end);
  time("INFER_RESPONSE_COMPLETE", times.answered);
  time("REQUEST_END", times.answered);

  const std::lock_guard lock(state_->mutex);
  Scope& scope = state_->scope(trace.setting);
  scope.held.append(scope.held.empty() ? "" : ",").append(text);
  ++scope.held_traces;
  const uint32_t frequency = state_->values(trace.setting).frequency;
  if (frequency != 0 && scope.held_traces >= frequency)
    state_->write(scope, true);
  else if (scope.held.size() > kHeldBytes)
    state_->flush(scope, trace.setting);
}

}  // namespace anymps::server
