// SPDX-License-Identifier: Apache-2.0
// Dynamic batching, and the default scheduler (one request after the other): the instances' threads
// take from one queue. A thread that is free forms its own batch and runs it; there is no thread in
// between.
#pragma once

#include <memory>
#include <vector>

#include "server/scheduling/batcher.h"

namespace anymps::server {

std::shared_ptr<Batcher> make_dynamic_batcher(const inference::ModelConfig& config,
                                              std::vector<std::unique_ptr<Instance>> instances,
                                              RateLimiter& limiter, ModelMetrics& metrics);

}  // namespace anymps::server
