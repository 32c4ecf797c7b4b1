// SPDX-License-Identifier: Apache-2.0
// One case of the benchmark: the same work through AnyMPS and through ATen.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "calls.h"

namespace bench {

struct Case {
  const char* name;
  std::function<void()> anymps, torch;
  std::vector<std::pair<at::Tensor, at::Tensor>> results = {};  // equal after one run of each
};

inline at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  if (dtype == at::kLong || dtype == at::kInt) return at::randint(-9, 9, shape, dtype);
  return at::randn(shape, dtype);
}

constexpr int64_t kMillion = 1 << 20;

// Hands over a case that may not be there: then it is left out, with the reason.
using AddCase = std::function<void(const std::function<Case()>&)>;

// Gradients of activations.
void add_gradients(const AddCase& add);
// Products with weights.
void add_layers(const AddCase& add);

}  // namespace bench
