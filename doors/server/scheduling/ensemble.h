// SPDX-License-Identifier: Apache-2.0
// Ensembles: models that hand their outputs to each other. Tensors go from step to step without a
// copy, no thread waits: the answer of a step starts those that it completes.
#pragma once

#include <memory>

#include "server/repository/ensemble_check.h"

namespace anymps::server {

// Runs the steps. max_inflight_requests is met by construction: a step runs once per request.
std::unique_ptr<Scheduler> make_ensemble(const AnswerContext& context, StepModels models);

}  // namespace anymps::server
