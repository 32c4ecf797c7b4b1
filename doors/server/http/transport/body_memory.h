// SPDX-License-Identifier: Apache-2.0
// Memory for the body of a request.
#pragma once

#include <cstddef>
#include <utility>

#include "server/core/request.h"
#include "server/http/transport/message.h"
#include "server/memory/held_bytes.h"

namespace anymps::server::http {

// A block for a body, placed so that what follows its JSON header is aligned. Pages that are never
// written to cost nothing: only what is filled of it is charged, not its size.
std::pair<Buffer, HeldBytes::Charge*> allocate_body(const Head& head, size_t bytes,
                                                    HeldBytes* held);

}  // namespace anymps::server::http
