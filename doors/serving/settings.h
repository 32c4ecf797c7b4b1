// SPDX-License-Identifier: Apache-2.0
// What a model's configuration says to whoever runs it. Both doors give the configuration as JSON
// in Triton's form (proto field names): Triton's core does so by itself, the server prints its
// protobuf message.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "serving/reach.h"

namespace anymps::serving {

struct TensorSettings {
  std::string name;
  amps_dtype dtype = AMPS_F32;
  std::vector<int64_t> dims;  // without the batch axis if max_batch_size > 0; -1: any extent
  std::optional<std::vector<int64_t>> reshape;
  bool optional = false;  // inputs: may be left out
  // Inputs: requests of one batch may differ in shape; they are laid end to end.
  bool ragged = false;
  // Comes from the sequence batcher or goes to it: a control input, or a state of the sequence. The
  // client knows nothing of it.
  bool internal = false;
};

// An input that tells the model about the requests of a ragged batch.
struct BatchInputSettings {
  std::string kind;  // "BATCH_ELEMENT_COUNT" ...
  std::vector<std::string> targets;
  amps_dtype dtype = AMPS_F32;
  std::vector<std::string> sources;
};

struct BatchOutputSettings {
  std::vector<std::string> targets;  // outputs that are cut as `sources` were laid together
  std::vector<std::string> sources;
};

struct Settings {
  std::string name;
  int64_t max_batch_size = 0;  // 0: the model has no batch axis
  std::vector<TensorSettings> inputs, outputs;
  std::vector<BatchInputSettings> batch_inputs;
  std::vector<BatchOutputSettings> batch_outputs;
  std::string model_filename;  // default_model_filename; "": model.mps, model.onnx, model.pte
  std::vector<std::string> op_libraries;  // model_operations.op_library_filename

  // `parameters` of the configuration, and what the environment says where they are silent.
  int optimization_level = 1;
  int threads = 0;         // 0: the device's default
  bool profile = false;    // per-kernel times, to the log when the model is unloaded
  std::string cache_dir;   // compiled graphs are kept there; relative: to the model's folder
  std::string precision;   // "", "fp32", "fp16", "bf16"
  std::string device;      // "": the default
  size_t graph_cache = 0;  // shapes that are kept ready; 0: by max_batch_size
  // Rows of a batch that are run at once: 0: all, -1: as many as are fastest, which is measured.
  int64_t micro_batch = -1;
};

inline constexpr int64_t kDefaultMaxBatchSize = 4;  // as Triton's --backend-config says
inline constexpr int64_t kMostRows = 1 << 20;       // of max_batch_size

// What the operator says for all models. Unlike a configuration, it may name any path.
struct OperatorOptions {
  // `parameters` that count where a configuration has none of the name.
  std::map<std::string, std::string> parameters;
  int64_t default_max_batch_size = kDefaultMaxBatchSize;
  Folders op_libraries;  // those that op libraries may come from; none: there are no op libraries
  Folders folders;       // the repositories: links of a model's files may lead there

  // An option of --backend-config=metal_mps,KEY=VALUE. False: there is none of this name (see
  // names()). Throws Error(kInvalidArgument) for a value that cannot be.
  bool set(const std::string& key, const std::string& value);
  static std::string names();
};

// Throws Error(kInvalidArgument) that names the model and the field.
Settings read_settings(const nlohmann::json& config, const OperatorOptions& options = {});

// Adds what the configuration leaves out and the graph tells: inputs, outputs, max_batch_size,
// dynamic_batching, backend. What is there must agree with the graph; an Error names the tensor,
// what the model has and what the configuration says.
nlohmann::json complete_config(nlohmann::json config, const amps::Graph& graph,
                               int64_t default_max_batch_size = kDefaultMaxBatchSize);
// The part of it that looks for contradictions.
void check_config(const Settings& settings, const amps::Graph& graph);

}  // namespace anymps::serving
