// SPDX-License-Identifier: Apache-2.0
// Finding, reading and caching the file of a model. A file is read into its own memory, so that
// overwriting it does not change a running model; entries of the cache are replaced as a whole and
// may be mapped.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "serving/compiled.h"
#include "serving/error.h"
#include "serving/log.h"

namespace anymps::serving {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"model.mps", "model.onnx", "model.pte", "model.metal_mps"};
constexpr uintmax_t kReadWhole = uintmax_t{2} << 30;  // larger files are mapped

// Two independent 64-bit hashes of a stream of bytes.
class Hash {
 public:
  void add(const char* data, size_t bytes) {
    size_ += bytes;
    for (; bytes >= 8; data += 8, bytes -= 8) {
      uint64_t word;
      std::memcpy(&word, data, 8);
      mix(word);
    }
    uint64_t rest = 0;
    if (bytes) std::memcpy(&rest, data, bytes);
    if (bytes) mix(rest ^ (uint64_t{bytes} << 56));
  }
  void add(const std::string& text) {
    mix(text.size());
    add(text.data(), text.size());
  }
  std::string text() {
    mix(size_);
    return fmt::format("{:016x}{:016x}", a_, b_);
  }

 private:
  void mix(uint64_t word) {
    a_ = multiply(a_ ^ word, 0x9e3779b97f4a7c15u);
    b_ = multiply(b_ + word, 0xd6e8feb86659fd93u) ^ word;
  }
  static uint64_t multiply(uint64_t x, uint64_t y) {
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  uint64_t a_ = 0x243f6a8885a308d3u, b_ = 0x13198a2e03707344u, size_ = 0;
};

void add_file(Hash& hash, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
    hash.add(block.data(), file.gcount());
  if (file.bad() || (!file.eof() && file.fail()))
    throw Error(Code::kUnavailable, "cannot read " + path.string());
}

// Of all files below a folder, their names included.
std::string content_hash(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Hash hash;
  for (const fs::path& file : files) {
    hash.add(file.lexically_relative(folder).string());
    add_file(hash, file);
  }
  return hash.text();
}

// A rebuilt library may compile differently.
std::string engine_identity() {
  std::string identity = amps_version();
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&amps_version), &info) && info.dli_fname) {
    std::error_code error;
    identity += fmt::format("|{}|{}", fs::file_size(info.dli_fname, error),
                            fs::last_write_time(info.dli_fname, error).time_since_epoch().count());
  }
  return identity;
}

amps::Graph load_private(const fs::path& path, const std::vector<std::string>& fed) {
  if (fs::file_size(path) <= kReadWhole) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(fs::file_size(path));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      throw Error(Code::kUnavailable, "cannot read " + path.string());
    try {
      return amps::Graph::load(std::as_bytes(std::span(bytes)), path.string(), fed);
    } catch (const amps::Error& error) {
      if (error.status() != AMPS_UNSUPPORTED) throw;
    }
  }
  return amps::Graph::load(path.string(), fed);  // with the files beside it
}

}  // namespace

ModelFile::ModelFile(fs::path version_dir, const Settings& settings, const OperatorOptions& options)
    : version_dir_(std::move(version_dir)), settings_(settings), options_(options) {
  const std::string version = version_dir_.filename().string();
  const std::string model = "model '" + settings.name + "', version " + version;
  if (!settings.model_filename.empty()) {
    path_ = ModelDir(version_dir_.parent_path(), options.folders)
                .file(version, settings.model_filename, model + ": default_model_filename");
    // A folder NAME.metal_mps makes Triton ask for model.metal_mps, whatever lies there.
    if (!fs::is_regular_file(path_) && settings.model_filename != "model.metal_mps")
      throw Error(Code::kUnavailable, model + ": there is no file '" + settings.model_filename +
                                          "' in " + version_dir_.string());
  }
  if (path_.empty() || !fs::is_regular_file(path_)) {
    path_.clear();
    for (const char* name : kNames)
      if (path_.empty() && fs::is_regular_file(version_dir_ / name)) path_ = version_dir_ / name;
  }
  if (path_.empty())
    throw Error(Code::kUnavailable, model +
                                        ": there is no model.mps, model.onnx, model.pte or "
                                        "model.metal_mps in " +
                                        version_dir_.string());
  where_ = model + ", file '" + path_.filename().string() + "'";
  device_name_ = amps::Device::get(settings.device).name();
  choose_cache();
  if (cache_dir_.empty()) return;
  Hash hash;
  hash.add(content_hash(version_dir_));
  for (const std::string& name : settings.op_libraries) add_file(hash, library_path(name));
  content_ = hash.text();
}

// A configuration has a cache in the model's own folder: elsewhere, what is written would become a
// model or a version of one.
void ModelFile::choose_cache() {
  if (settings_.cache_dir.empty()) return;
  const fs::path model_dir = version_dir_.parent_path();
  fs::path folder = (model_dir / settings_.cache_dir).lexically_normal();
  const auto operators = options_.parameters.find("cache_dir");
  const bool by_operator =
      operators != options_.parameters.end() && lies_in(folder, {operators->second});
  if (!by_operator) {
    const std::string below =
        fs::weakly_canonical(folder).lexically_relative(fs::weakly_canonical(model_dir)).string();
    if (!lies_in(folder, {model_dir}) || below == "." || (below[0] >= '0' && below[0] <= '9'))
      refuse(where_ + ": parameter 'cache_dir': '" + settings_.cache_dir +
             "' must be a folder of the model's own beside its versions, such as 'cache'; others "
             "are the operator's to name: --backend-config=metal_mps,cache_dir=DIR");
  }
  cache_dir_ = std::move(folder);
}

fs::path ModelFile::library_path(const std::string& name) const {
  std::string folders;
  for (const fs::path& folder : options_.op_libraries) {
    std::error_code error;
    fs::path path = fs::canonical(folder / name, error);
    if (!error && fs::is_regular_file(path, error) && lies_in(path, {folder})) return path;
    folders += (folders.empty() ? "" : ", ") + folder.string();
  }
  refuse(where_ + ": op library '" + name + "' cannot be loaded: " +
         (folders.empty()
              ? "the operator has named no folder for op libraries: --op-library-directory DIR, or "
                "--backend-config=metal_mps,op_library_directory=DIR in tritonserver"
              : "it does not lie in " + folders));
}

void ModelFile::load_op_libraries() const {
  for (const std::string& name : settings_.op_libraries) {
    const std::string path = library_path(name).string();
    if (amps_op_library_load(path.c_str()) != AMPS_OK)
      throw Error(Code::kInvalidArgument,
                  where_ + ": op library '" + name + "' cannot be loaded: " + amps_last_error());
    if (verbose()) log_line(where_ + ": ops of " + path);
  }
}

fs::path ModelFile::cache_path(const std::vector<std::string>& fed) const {
  Hash key;
  for (const std::string& part :
       {content_, path_.filename().string(), engine_identity(), device_name_,
        std::to_string(settings_.optimization_level), settings_.precision})
    key.add(part);
  for (const std::string& name : fed) key.add(name);
  return cache_dir_ / (key.text() + ".mps");
}

amps::Graph ModelFile::original() const {
  try {
    return load_private(path_, {});
  } catch (const amps::Error& error) {
    throw Error(code_of(error.status()), where_ + ": " + error.what());
  }
}

amps::Graph ModelFile::load(const std::vector<std::string>& fed, bool& compiled) const {
  compiled = false;
  std::error_code ignored;
  if (!content_.empty() && fs::is_regular_file(cache_path(fed), ignored)) {
    try {
      amps::Graph graph = amps::Graph::load(cache_path(fed).string());
      compiled = true;
      if (verbose()) log_line(where_ + ": compiled before, in " + cache_path(fed).string());
      return graph;
    } catch (const amps::Error& error) {
      if (verbose()) log_line(where_ + ": an entry of the cache is not used: " + error.what());
    }
  }
  try {
    return load_private(path_, fed);
  } catch (const amps::Error& error) {
    throw Error(code_of(error.status()), where_ + ": " + error.what());
  }
}

amps::Executable ModelFile::compile(amps::Graph& graph, const std::vector<std::string>& fed,
                                    bool compiled, const amps::Device& device) const {
  amps::CompileOptions options;
  options.threads = settings_.threads;
  options.optimization_level = compiled ? 0 : settings_.optimization_level;
  options.plan_cache = plan_cache(settings_);
  try {
    if (!compiled && settings_.precision == "fp16") graph.set_precision(amps::DType::f16);
    if (!compiled && settings_.precision == "bf16") graph.set_precision(amps::DType::bf16);
    amps::Executable executable = device.compile(graph, options);
    if (content_.empty() || compiled) return executable;
    std::error_code ignored;
    fs::create_directories(cache_dir_, ignored);
    const std::string path = cache_path(fed).string();
    const amps_status status = amps_executable_save(executable.c(), path.c_str());
    if (status != AMPS_OK)
      log_line(where_ + ": the compiled graph is not kept: " + amps_last_error());
    else if (verbose())
      log_line(where_ + ": the compiled graph is kept in " + path);
    return executable;
  } catch (const amps::Error& error) {
    throw Error(code_of(error.status()), where_ + ": " + error.what());
  }
}

}  // namespace anymps::serving
