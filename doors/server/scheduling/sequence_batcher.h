// SPDX-License-Identifier: Apache-2.0
// Sequence batching: all requests of a sequence go to the same instance, one after the other. Each
// instance has slots for a number of sequences; the others wait in a backlog until a slot is free.
#pragma once

#include <memory>
#include <vector>

#include "server/scheduling/batcher.h"

namespace anymps::server {

std::shared_ptr<Batcher> make_sequence_batcher(const inference::ModelConfig& config,
                                               std::vector<std::unique_ptr<Instance>> instances,
                                               RateLimiter& limiter, ModelMetrics& metrics,
                                               const serving::ModelDir& model_dir);

}  // namespace anymps::server
