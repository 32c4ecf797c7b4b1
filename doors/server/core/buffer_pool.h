// SPDX-License-Identifier: Apache-2.0
// Memory of the tensors that the server makes. Large blocks are kept for the next answer of about
// that size: fresh pages cost more than many a model.
#pragma once

#include "server/core/request.h"

namespace server {

// `bytes` writable bytes on a 64-byte boundary; they go back when the last copy of the buffer is
// gone. Throws kUnavailable if there is no memory.
Buffer allocate_buffer(size_t bytes);

}  // namespace server
