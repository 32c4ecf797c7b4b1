// SPDX-License-Identifier: Apache-2.0
// A model's file, compiled: found by its configuration, read once, and kept in `cache_dir` if the
// configuration names one. Inputs with a default in the file that a request leaves out need a
// separate graph; it is compiled when it is asked for.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "serving/chunks.h"
#include "serving/error.h"
#include "serving/settings.h"

namespace anymps::serving {

// The shapes of all results for the shapes of one set of feeds.
struct ResultShapes {
  struct Result {
    bool ranked = false;
    bool known = false;  // every extent is
    std::vector<int64_t> dims;
  };
  std::vector<Result> results;
};

// Where a feed comes from.
struct Feed {
  std::string name;
  int64_t rank = -1;     // in the graph; -1: not known
  int input = -1;        // of Settings::inputs, or
  int batch_input = -1;  // of Settings::batch_inputs
};

class Compiled {
 public:
  Compiled(const Settings& settings, const amps::Graph& graph, amps::Executable executable);

  amps_executable* c() const { return executable_.c(); }
  const std::vector<Feed>& feeds() const { return feeds_; }
  // For each of Settings::outputs its place among the results.
  const std::vector<size_t>& outputs() const { return outputs_; }
  size_t result_count() const { return result_count_; }
  // `dims`: the extents of all feeds, one after the other. Throws amps::Error if they do not fit.
  // `fresh` is set if these shapes have not been met before.
  std::shared_ptr<const ResultShapes> result_shapes(const std::vector<size_t>& ranks,
                                                    const std::vector<int64_t>& dims, bool& fresh);
  Chunks& chunks() { return chunks_; }

 private:
  void log_plan(const std::vector<int64_t>& dims) const;

  amps::Executable executable_;
  std::vector<Feed> feeds_;
  std::vector<size_t> outputs_;
  size_t result_count_ = 0;
  size_t shape_limit_;
  Chunks chunks_;
  std::string model_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const ResultShapes>> shapes_;
};

class ModelFile {
 public:
  // Finds the file. Throws Error that names model, version and file.
  ModelFile(std::filesystem::path version_dir, const Settings& settings,
            const OperatorOptions& options);

  const std::filesystem::path& path() const { return path_; }
  // What model_operations names, out of the operator's folders: they run code.
  void load_op_libraries() const;
  // The graph, with these of its defaults as inputs. From the cache, its passes have run already;
  // then `compiled` is set.
  amps::Graph load(const std::vector<std::string>& fed, bool& compiled) const;
  amps::Graph original() const;  // never from the cache
  // Compiles and fills the cache. The graph is changed if another precision is asked for.
  amps::Executable compile(amps::Graph& graph, const std::vector<std::string>& fed, bool compiled,
                           const amps::Device& device) const;

 private:
  std::filesystem::path library_path(const std::string& name) const;
  std::filesystem::path cache_path(const std::vector<std::string>& fed) const;

  void choose_cache();

  std::filesystem::path version_dir_, path_, cache_dir_;
  std::string where_;  // "model 'm', version 1, file model.onnx"
  const Settings& settings_;
  const OperatorOptions& options_;
  std::string device_name_;
  std::string content_;  // hash of all files of the version, if there is a cache
};

// Sets of shapes that are kept ready.
size_t plan_cache(const Settings& settings);
// Codes of the engine as codes of serving.
Code code_of(amps_status status);

}  // namespace anymps::serving
