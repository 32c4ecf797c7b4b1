// SPDX-License-Identifier: Apache-2.0
// Requests that a configuration asks to run before a model is ready (model_warmup).
#pragma once

#include <vector>

#include "model_config.pb.h"
#include "server/core/request.h"
#include "server/scheduling/scheduler.h"
#include "serving/reach.h"

namespace anymps::server {

// Runs them on this instance. Throws the Error of the first that fails; files lie in
// `model_dir`/warmup.
void warm_up(const inference::ModelConfig& config, const serving::ModelDir& model_dir,
             Instance& instance);

}  // namespace anymps::server
