// SPDX-License-Identifier: Apache-2.0
// Whether a device computes: for each dtype a small program whose right answer is known by its
// bits.
#pragma once

#include <string>
#include <vector>

#include "anymps/anymps.hpp"

namespace anymps::cli {

struct SelfTest {
  std::string dtype;
  std::string problem;  // empty: passed
};

// One entry for each dtype of the library, in its order.
std::vector<SelfTest> self_test(const amps::Device& device);

}  // namespace anymps::cli
