// SPDX-License-Identifier: Apache-2.0
// Requests that go together, as one run: their inputs are laid together, their outputs taken apart.
#pragma once

#include <memory_resource>
#include <span>

#include "common/clock.h"
#include "serving/check.h"
#include "serving/compiled.h"

namespace anymps::serving {

using common::now_ns;

struct RunContext {
  const Settings& settings;
  const amps::Device& device;
  bool shares_memory;       // the device works on the host's memory
  amps_profiler* profiler;  // may be null
  std::pmr::memory_resource* memory;
  unsigned side_by_side = 1;  // runs at the same time
};

// May these two be parts of one batch?
bool goes_with(const Settings& settings, const Compiled& compiled, const Item& a, const Item& b);

// Throws Error or amps::Error if the run as a whole fails. A request whose outputs have no place
// fails alone. Times of the run proper are widened, not replaced.
void run_batch(const RunContext& context, Compiled& compiled, std::span<Item* const> items,
               Times& times);

}  // namespace anymps::serving
