// SPDX-License-Identifier: Apache-2.0
// What the engine's profiler recorded, as blocks of an ETDump.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "etdump.h"

namespace anymps::runner {

// The instruction that calls a delegate, by how names of the delegate's nodes begin: "delegate0",
// "delegate0_1" for the second call.
using DelegateCalls = std::map<std::string, int>;
DelegateCalls delegate_calls(const amps::Program& program, const std::string& method);

// The instruction of the program that a node comes from; -1: not known.
int instruction_of(const std::string& node, const DelegateCalls& calls);

// One block "Execute" per run, in order: the whole run as "Method::execute", and its kernels. Times
// are shifted by `origin_ns`, so that blocks of several profilers follow each other.
std::vector<RunBlock> run_blocks(const amps::Profiler& profiler, int bundled_input,
                                 int64_t origin_ns, const DelegateCalls& calls);

}  // namespace anymps::runner
