// SPDX-License-Identifier: Apache-2.0
// A driver for tests whose memory the host cannot see: device addresses are tagged, so a kernel or
// an engine that touches them directly crashes, and everything must go through the driver's copies
// and its queue, as on a GPU. It has kernels of its own for a few ops; the rest runs staged through
// the host.
#pragma once

#include <cstddef>

namespace anymps {

// Registers the driver "island"; safe to call more than once.
void register_island_driver();

struct IslandCounters {
  size_t to_device = 0, to_host = 0, launches = 0;
};
IslandCounters island_counters();

}  // namespace anymps
