// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor as text, with commas between: what traces show.
#pragma once

#include <span>
#include <string>

#include "server/core/request.h"

namespace anymps::server {

// Elements that lie across two buffers are not shown; nor is what comes after the first 1000.
std::string tensor_text(amps_dtype dtype, std::span<const Buffer> buffers);

}  // namespace anymps::server
