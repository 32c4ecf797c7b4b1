// SPDX-License-Identifier: Apache-2.0
// What the configuration of an ensemble asks of the models that it runs: whether its steps fit
// together, first by the names of its tensors, then, when the models are loaded, by their types and
// shapes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/repository/model_version.h"

namespace anymps::server {

// The flow of tensors, as far as the configuration of the ensemble tells. Throws kInvalidArgument.
void check_ensemble_config(const inference::ModelConfig& config);

// Whether a step runs one of these models.
bool depends_on(const inference::ModelConfig& config, const std::set<std::string>& models);

// The versions that the steps run, one per step.
using StepModels = std::vector<std::shared_ptr<ModelVersion>>;

// That the tensors of the steps fit together. Throws kInvalidArgument.
void check_ensemble_steps(const inference::ModelConfig& config, const StepModels& models);

// What a request to the ensemble runs in all. Throws kInvalidArgument if that is more than
// repository/limits.h gives.
ModelVersion::Extent extent_of(const inference::ModelConfig& config, const StepModels& models);

}  // namespace anymps::server
