// SPDX-License-Identifier: Apache-2.0
// What is asked of a request before it is queued. The order of the checks and the wording are
// Triton's.
#pragma once

#include <cstdint>

#include "model_config.pb.h"
#include "server/core/request.h"

namespace anymps::server {

// Throws kInvalidArgument. Nothing is allocated for what the request claims.
void validate(const inference::ModelConfig& config, const Request& request);

// Rows of a request that was validated; 1 for models without a batch axis.
uint64_t rows_of(const inference::ModelConfig& config, const Request& request);

}  // namespace anymps::server
