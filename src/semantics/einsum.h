// SPDX-License-Identifier: Apache-2.0
// Einstein's summation: the equation as lists of labels.
#pragma once

#include <string>
#include <vector>

namespace anymps {

// Labels are numbers; every axis of every tensor has one. Those of an ellipsis are labels too, the
// last ones of two ellipses being the same.
struct Einsum {
  std::vector<std::vector<size_t>> inputs;
  std::vector<size_t> output;
  size_t labels = 0;

  // Fails, saying what is wrong, unless the equation fits tensors of these ranks.
  static Einsum parse(const std::string& equation, const std::vector<size_t>& ranks);
  bool in_output(size_t label) const;
};

}  // namespace anymps
