// SPDX-License-Identifier: Apache-2.0
// Memory of the tensors that the server makes. Large blocks are kept for the next answer of about
// that size: fresh pages cost more than many models.
#pragma once

#include <chrono>

#include "server/core/request.h"

namespace anymps::server {

// `bytes` writable bytes on a 64-byte boundary; they go back when the last copy of the buffer is
// gone. Throws kUnavailable if there is no memory.
Buffer allocate_buffer(size_t bytes);

// Gives back blocks that have lain unused for longer than this. The next answers need fresh pages.
void trim_buffers(std::chrono::nanoseconds age);
size_t unused_buffer_bytes();

}  // namespace anymps::server
