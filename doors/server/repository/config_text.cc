// SPDX-License-Identifier: Apache-2.0
#include "server/repository/config_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "anymps/anymps.hpp"

namespace anymps::server {
namespace {

namespace fs = std::filesystem;
using inference::ModelConfig;
using inference::ModelInstanceGroup;

constexpr uint64_t kSequenceIdle = 1'000'000;  // microseconds
constexpr int kMaxMessageDepth = 64;

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty())
      text = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message;
  }
  std::string text;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file)
    throw Error(Code::kInternal,
                "failed to open text file for read " + path.string() + ": " + std::strerror(errno));
  text << file.rdbuf();
  return text.str();
}

// What instances without a kind run on.
ModelInstanceGroup::Kind device_kind() {
  static const ModelInstanceGroup::Kind kind = [] {
    const std::string name = amps::Device::get().name();
    return name == "cpu" || name == "reference" ? ModelInstanceGroup::KIND_CPU
                                                : ModelInstanceGroup::KIND_GPU;
  }();
  return kind;
}

void normalize_groups(ModelConfig& config) {
  const bool given = config.instance_group_size() > 0;
  if (!given) config.add_instance_group();
  for (int i = 0; i < config.instance_group_size(); ++i) {
    ModelInstanceGroup& group = *config.mutable_instance_group(i);
    if (group.name().empty())
      group.set_name(given ? config.name() + "_" + std::to_string(i) : config.name());
    if (group.kind() == ModelInstanceGroup::KIND_AUTO)
      group.set_kind(group.gpus_size() > 0 ? ModelInstanceGroup::KIND_GPU : device_kind());
    if (group.kind() == ModelInstanceGroup::KIND_GPU && group.gpus_size() == 0) group.add_gpus(0);
    if (group.count() < 1) group.set_count(1);
  }
}

}  // namespace

ModelConfig parse_config_text(std::string_view text, const std::string& origin) {
  ModelConfig config;
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxMessageDepth);
  if (!parser.ParseFromString(std::string(text), &config))
    throw Error(Code::kInvalidArgument,
                "failed to read text proto from " + origin + ": " + error.text);
  return config;
}

void set_model_name(ModelConfig& config, const std::string& name) {
  if (config.name().empty()) config.set_name(name);
  if (config.name() != name)
    throw Error(Code::kInvalidArgument, "unexpected directory name '" + name + "' for model '" +
                                            config.name() +
                                            "', directory name must equal model name");
}

ModelConfig read_config(const fs::path& model_dir, const std::string& name,
                        const std::string& config_name, bool may_miss) {
  fs::path path = model_dir / "configs" / (config_name + ".pbtxt");
  if (config_name.empty() || !fs::is_regular_file(path)) path = model_dir / "config.pbtxt";
  ModelConfig config;
  if (!may_miss || fs::exists(path)) config = parse_config_text(read_text(path), path.string());
  set_model_name(config, name);
  return config;
}

bool is_ensemble(const ModelConfig& config) {
  return config.platform() == "ensemble" || config.has_ensemble_scheduling();
}

void normalize_config(ModelConfig& config) {
  if (config.version_policy().policy_choice_case() ==
      inference::ModelVersionPolicy::POLICY_CHOICE_NOT_SET)
    config.mutable_version_policy()->mutable_latest()->set_num_versions(1);
  if (is_ensemble(config)) {
    config.mutable_model_transaction_policy();
    return;
  }
  inference::ModelOptimizationPolicy& optimization = *config.mutable_optimization();
  if (!optimization.has_input_pinned_memory())
    optimization.mutable_input_pinned_memory()->set_enable(true);
  if (!optimization.has_output_pinned_memory())
    optimization.mutable_output_pinned_memory()->set_enable(true);
  if (config.has_dynamic_batching() && config.max_batch_size() > 0 &&
      config.dynamic_batching().preferred_batch_size_size() == 0)
    config.mutable_dynamic_batching()->add_preferred_batch_size(config.max_batch_size());
  if (config.has_sequence_batching()) {
    inference::ModelSequenceBatching& sequence = *config.mutable_sequence_batching();
    if (sequence.max_sequence_idle_microseconds() == 0)
      sequence.set_max_sequence_idle_microseconds(kSequenceIdle);
    if (sequence.has_oldest() && config.max_batch_size() > 0 &&
        sequence.oldest().preferred_batch_size_size() == 0)
      sequence.mutable_oldest()->add_preferred_batch_size(config.max_batch_size());
  }
  normalize_groups(config);
}

}  // namespace anymps::server
