// SPDX-License-Identifier: Apache-2.0
// The configuration of a model: read from config.pbtxt, filled with Triton's defaults, checked.
// What a model leaves out, its graph tells later (serving::complete_config).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model_config.pb.h"
#include "server/core/request.h"

namespace anymps::server {

// Throws kInvalidArgument: "failed to read text proto from ORIGIN: 2:4: ..." (line, column).
inference::ModelConfig parse_config_text(std::string_view text, const std::string& origin);

// configs/CONFIG_NAME.pbtxt of the model if there is one, else config.pbtxt, else an empty message
// if `may_miss`. The name is the folder's; kInvalidArgument if the file says another one.
inference::ModelConfig read_config(const std::filesystem::path& model_dir, const std::string& name,
                                   const std::string& config_name, bool may_miss);

// Sets the name if it is missing; kInvalidArgument if it is another one.
void set_model_name(inference::ModelConfig& config, const std::string& name);

// Defaults as Triton shows them: version policy, optimization, instance groups, batch sizes.
void normalize_config(inference::ModelConfig& config);

bool is_ensemble(const inference::ModelConfig& config);

// What is wrong by the configuration alone, before anything is loaded. Throws kInvalidArgument with
// Triton's wording; ensembles are checked as a whole (check_ensemble_config).
void check_config(const inference::ModelConfig& config);
// The same for inputs, outputs and instance groups, and check_limits. With `complete`, nothing may
// be missing.
void check_tensors(const inference::ModelConfig& config, bool complete);
// That no number asks for more than repository/limits.h gives.
void check_limits(const inference::ModelConfig& config);

}  // namespace anymps::server
