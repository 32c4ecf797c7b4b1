// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>

#include "common/streams.h"
#include "options.h"

namespace anymps::cli {

namespace {

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& given) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : given) {
    const auto [name, value] = split_assignment(text);
    if (!dims.emplace(name, std::stoll(value)).second)
      wrong_usage("--dim", fmt::format("'{}' is given twice", name));
  }
  return dims;
}

std::map<std::string, std::string> parse_inputs(const std::vector<std::string>& given) {
  std::map<std::string, std::string> files;
  for (const std::string& text : given)
    if (!files.insert(split_assignment(text)).second)
      wrong_usage("--input", fmt::format("'{}' is given twice", split_assignment(text).first));
  return files;
}

// Floats are normal; integers are 0 to 9, which is inside every vocabulary; masks are all ones.
Array random_array(const amps::Value& input, std::vector<int64_t> shape, std::mt19937_64& random) {
  Array array;
  array.dtype = input.dtype();
  array.shape = std::move(shape);
  size_t count = 1;
  constexpr size_t kMost = size_t{1} << 40;  // elements: sizes in bytes do not overflow either
  for (const int64_t extent : array.shape)
    if (__builtin_mul_overflow(count, extent, &count) || count > kMost)
      throw amps::Error(AMPS_INVALID_ARGUMENT,
                        fmt::format("[run] input '{}' of shape [{}] is too large", input.name(),
                                    fmt::join(array.shape, ", ")));
  const bool mask = input.name().find("mask") != std::string::npos;
  std::normal_distribution<float> normal;
  if (array.dtype == amps::DType::string) {
    for (size_t i = 0; i < count; ++i) array.strings.push_back(std::to_string(random() % 10));
    return array;
  }
  array.data.resize(count * amps::size_of(array.dtype));
  auto fill = [&]<typename T>(T, auto&& draw) {
    for (size_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(draw());
      std::memcpy(array.data.data() + i * sizeof(T), &value, sizeof(T));
    }
  };
  auto integer = [&] { return mask ? 1 : static_cast<int>(random() % 10); };
  auto real = [&] { return normal(random); };
  switch (array.dtype) {
    case amps::DType::f32:
      fill(float{}, real);
      break;
    case amps::DType::f64:
      fill(double{}, real);
      break;
    case amps::DType::c64:
      count *= 2;
      fill(float{}, real);
      break;
    case amps::DType::c128:
      count *= 2;
      fill(double{}, real);
      break;
    case amps::DType::f16:  // 1.0 + k / 1024
      fill(uint16_t{}, [&] { return 0x3c00 | (random() & 0x3ff); });
      break;
    case amps::DType::bf16:
      fill(uint16_t{}, [&] { return 0x3f80 | (random() & 0x7f); });
      break;
    case amps::DType::boolean:
      fill(uint8_t{}, [&] { return mask ? 1 : random() & 1; });
      break;
    default:
      switch (amps::size_of(array.dtype)) {
        case 1:
          fill(uint8_t{}, integer);
          break;
        case 2:
          fill(uint16_t{}, integer);
          break;
        case 4:
          fill(uint32_t{}, integer);
          break;
        default:
          fill(uint64_t{}, integer);
      }
  }
  return array;
}

amps::Executable compile(const amps::Device& device, const ModelOptions& options) {
  amps::CompileOptions compile_options;
  compile_options.threads = options.threads;
  compile_options.optimization_level = options.level;
  compile_options.check = options.check;
  compile_options.quantize = options.quantize;
  if (!options.method.empty())
    return device.compile(load_graph(options.model, options.method), compile_options);
  amps::Executable executable = device.load(options.model, compile_options);
  // A file for an input with a default: that input must not be a constant.
  std::set<std::string> names;
  for (const auto& [name, file] : parse_inputs(options.inputs)) names.insert(name);
  for (const amps::Value& input : executable.inputs()) names.erase(input.name());
  if (names.empty()) return executable;
  std::vector<std::string> wanted;
  for (const amps::Value& value : amps::Graph::load(options.model).defaults())
    if (names.contains(value.name())) wanted.push_back(value.name());
  if (wanted.empty()) return executable;
  return device.compile(amps::Graph::load(options.model, wanted), compile_options);
}

}  // namespace

CLI::App* ModelOptions::add_command(CLI::App& parent, const std::string& name,
                                    const std::string& doc) {
  CLI::App& app = *parent.add_subcommand(name, doc);
  app.add_option("model", model, "an .onnx, .mps or .pte file")->required();
  app.add_option("--method", method,
                 "which method of a .pte file; default: forward, or the only one");
  app.add_option("--device", device, "cpu, reference or null; default: $ANYMPS_DRIVER or cpu")
      ->check(device_name());
  app.add_option("-t,--threads", threads, "threads; 0: all cores")
      ->transform(whole_number(0, AMPS_MAX_THREADS));
  app.add_option("-O,--level", level, "0: no passes, 1: all passes")->transform(whole_number(0, 1));
  return &app;
}

std::vector<CLI::Option*> ModelOptions::add_feeds_to(CLI::App& app) {
  return {app.add_option("-i,--input", inputs, "a file for an input; may be repeated")
              ->allow_extra_args(false)
              ->check(assignment("FILE.npy", false)),
          add_dims_to(app, "of a dynamic dimension, e.g. N=4; default 1; may be repeated"),
          app.add_option("--seed", seed, "of the random inputs")
              ->transform(whole_number(0, std::numeric_limits<uint64_t>::max()))};
}

void ModelOptions::add_inputs_to(CLI::App& app) {
  add_feeds_to(app);
  app.add_flag("--random-inputs", random_inputs,
               "random numbers for inputs without a file: normal floats, integers 0 to 9, masks 1");
  app.add_flag("--check", check, "compare every node with the reference driver");
}

CLI::Option* ModelOptions::add_dims_to(CLI::App& app, const std::string& doc) {
  return app.add_option("--dim", dims, doc)
      ->allow_extra_args(false)
      ->check(assignment("EXTENT", true));
}

Session::Session(const ModelOptions& options)
    : device(amps::Device::get(options.device)), executable(nullptr) {
  const double start = now_ms();
  executable = compile(device, options);
  load_ms = now_ms() - start;
}

void Session::run(const std::vector<amps::Tensor>& feeds, std::vector<amps::Tensor>& results,
                  amps::Profiler* profiler) const {
  for (amps::Tensor& result : results)
    if (result.container() != AMPS_TENSOR || result.dtype() == amps::DType::string) result = {};
  executable.run(feeds, results, nullptr, profiler);
}

std::vector<Part> Session::parts(const std::string& name, const amps::Tensor& result) const {
  const amps::DType dtype = result.dtype();
  if (result.container() == AMPS_TENSOR) {
    const bool narrow = dtype > amps::DType::c64 && dtype < amps::DType::string;
    const amps::Tensor tensor =
        narrow ? device.eager("cast", {result}, {{"dtype", amps::DType::f32}})[0] : result;
    return {{name, dtype, to_array(tensor)}};
  }
  std::vector<Part> list;
  const std::vector<amps::Tensor> items = result.items();
  for (size_t i = 0; i < items.size(); ++i)
    for (Part& part : parts(fmt::format("{}.{}", name, i), items[i]))
      list.push_back(std::move(part));
  return list;
}

// "input0.1<=128" is the extent input0.1 with its largest value.
static std::string name_of_dim(const amps::Value& input, size_t axis) {
  const std::string name = input.dim_name(axis);
  return name.substr(0, name.find("<="));
}

std::map<std::string, int64_t> Session::dims_of(const ModelOptions& options) const {
  std::set<std::string> known;
  for (const amps::Value& input : executable.inputs()) {
    const std::vector<int64_t> shape = input.shape();
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] < 0) known.insert(name_of_dim(input, i));
  }
  auto dims = parse_dims(options.dims);
  for (const auto& [name, extent] : dims)
    if (!known.contains(name))
      throw amps::Error(
          AMPS_NOT_FOUND,
          fmt::format("[--dim] the inputs have no dynamic dimension '{}'; {}", name,
                      known.empty() ? "they have none"
                                    : fmt::format("there is {}", fmt::join(known, ", "))));
  return dims;
}

std::vector<int64_t> Session::shape_of(const amps::Value& input,
                                       std::map<std::string, int64_t>& dims) const {
  std::vector<int64_t> shape = input.shape();
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0) shape[i] = dims.try_emplace(name_of_dim(input, i), 1).first->second;
  return shape;
}

std::vector<amps::Tensor> Session::feeds(const ModelOptions& options) const {
  std::map<std::string, std::string> files = parse_inputs(options.inputs);
  auto dims = dims_of(options);
  std::mt19937_64 random(options.seed);
  std::vector<amps::Tensor> feeds;
  for (const amps::Value& input : executable.inputs()) {
    if (input.container() != AMPS_TENSOR)
      throw amps::Error(AMPS_UNSUPPORTED,
                        fmt::format("[run] input '{}' is a list or an optional, which no file can "
                                    "give: use the Python package",
                                    input.name()));
    Array array;
    if (auto it = files.find(input.name()); it != files.end()) {
      array = read_npy(it->second);
      files.erase(it);
      const std::vector<int64_t> shape = input.shape();
      for (size_t i = 0; i < shape.size() && i < array.shape.size(); ++i) {
        if (shape[i] < 0) dims.try_emplace(name_of_dim(input, i), array.shape[i]);
      }
    } else if (options.random_inputs) {
      array = random_array(input, shape_of(input, dims), random);
    } else {
      throw amps::Error(
          AMPS_INVALID_ARGUMENT,
          fmt::format("[run] input {} needs a value: --input {}=FILE.npy or --random-inputs",
                      describe(input), input.name()));
    }
    feeds.push_back(common::to_tensor(device, array));
  }
  if (!files.empty())
    throw amps::Error(AMPS_NOT_FOUND,
                      fmt::format("[run] the model has no input '{}'", files.begin()->first));
  return feeds;
}

std::vector<int64_t> Session::feed_dims(const ModelOptions& options) const {
  auto dims = dims_of(options);
  std::vector<int64_t> list;
  for (const amps::Value& input : executable.inputs())
    for (const int64_t extent : shape_of(input, dims)) list.push_back(extent);
  return list;
}

std::optional<amps::Program> open_program(const std::string& path) {
  std::error_code none;  // a pipe is not waited for, and loading refuses it
  if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
  char head[8] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof(head));
  const std::string_view kind(head + 4, 2);
  if (kind != "ET" && kind != "BP") return std::nullopt;
  return amps::Program::open(path);
}

amps::Graph load_graph(const std::string& path, const std::string& method) {
  if (method.empty()) return amps::Graph::load(path);
  const auto program = open_program(path);
  if (!program && path.ends_with(".pte")) return amps::Program::open(path).graph(method);  // throws
  if (!program)
    throw amps::Error(AMPS_INVALID_ARGUMENT,
                      fmt::format("[--method] {}: only .pte files have methods", path));
  return program->graph(method);
}

void check_output(const std::filesystem::path& output, const std::string& model,
                  const std::vector<std::string>& endings) {
  std::error_code none;
  if (std::filesystem::equivalent(output, model, none))
    wrong_usage("--output", fmt::format("{} would overwrite the model", output.string()));
  if (std::find(endings.begin(), endings.end(), output.extension().string()) == endings.end())
    wrong_usage("--output", fmt::format("{}: a name that ends in {} is needed", output.string(),
                                        fmt::join(endings, " or ")));
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  // Bytes that are not UTF-8 do not stop the text, and terminals are given no control characters:
  // the library leaves DEL and C1 as they are.
  const std::string text =
      json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool wide = byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte == 0x7f)
      out += "\\u007f";
    else if (wide)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
    else
      out += text[i];
  }
  return out;
}

void note_state(const amps::Executable& executable) {
  if (executable.stateful())
    common::say(
        "note: the program keeps state, and each run goes on from what the one before left\n");
}

std::string describe(const amps::Value& value) {
  std::string text = shown(value.name()) + ": " + amps::name(value.dtype()) + "[";
  if (!value.ranked()) return text + "?]";
  const std::vector<int64_t> shape = value.shape();
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + (shape[i] < 0 ? shown(value.dim_name(i)) : std::to_string(shape[i]));
  return text + "]";
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 3) bytes /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit ? 1 : 0, units[unit]);
}

double peak_rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

}  // namespace anymps::cli
