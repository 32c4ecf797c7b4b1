// SPDX-License-Identifier: Apache-2.0
// Compares what a run gave with what the bundle expects.
#pragma once

#include <string>
#include <vector>

#include "anymps/anymps.hpp"

namespace anymps::runner {

struct Tolerance {
  double rtol = 1e-4;
  double atol = 1e-4;
  bool scaled = true;  // atol is of the output's largest element where that is below 1
};

// From the options with which the delegates were compiled. Upstream guesses from the file's name.
Tolerance tolerance_of(const amps::Program& program, const std::string& method);

// "" when all are equal within the tolerance; otherwise which element is the worst, and by how
// much. Nothing is expected where a tensor is null.
std::string difference(const std::vector<amps::Tensor>& got,
                       const std::vector<amps::Tensor>& expected, const Tolerance& tolerance);

}  // namespace anymps::runner
