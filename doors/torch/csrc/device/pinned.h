// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the CPU. The device computes in the host's memory, so all of that is as good as
// pinned: programs only have to be told what they asked for.
#pragma once

#include <c10/core/Allocator.h>

namespace anymps::aten {

c10::Allocator& pinned_allocator();
bool is_pinned(const void* data);

}  // namespace anymps::aten
