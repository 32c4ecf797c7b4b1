// SPDX-License-Identifier: Apache-2.0
// Ensembles: models that hand their outputs to each other. Tensors go from step to step without a
// copy, no thread waits: the answer of a step starts those that it completes.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/repository/model_version.h"

namespace server {

// The flow of tensors, as far as the configuration of the ensemble tells. Throws kInvalidArgument.
void check_ensemble_config(const inference::ModelConfig& config);

// Whether a step runs one of these models.
bool depends_on(const inference::ModelConfig& config, const std::set<std::string>& models);

// The versions that the steps run, one a step.
using StepModels = std::vector<std::shared_ptr<ModelVersion>>;

// That the tensors of the steps fit together. Throws kInvalidArgument.
void check_ensemble_steps(const inference::ModelConfig& config, const StepModels& models);

// What a request to the ensemble runs in all. Throws kInvalidArgument if that is more than
// core/limits.h gives.
ModelVersion::Extent extent_of(const inference::ModelConfig& config, const StepModels& models);

// Runs the steps. max_inflight_requests is met by construction: a step runs once a request.
std::unique_ptr<Scheduler> make_ensemble(const AnswerContext& context, StepModels models);

}  // namespace server
