// SPDX-License-Identifier: Apache-2.0
// What the engine's profiler recorded, as blocks of an ETDump.
#pragma once

#include <vector>

#include "anymps/anymps.hpp"
#include "etdump.h"

namespace runner {

// One block "Execute" a run, in order: the whole run as "Method::execute", and its kernels. Times
// are shifted by `origin_ns`, so that blocks of several profilers follow each other.
std::vector<RunBlock> run_blocks(const amps::Profiler& profiler, int bundled_input,
                                 int64_t origin_ns);

}  // namespace runner
