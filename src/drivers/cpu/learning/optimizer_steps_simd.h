// SPDX-License-Identifier: Apache-2.0
// The steps of optimizers over contiguous runs of f32 or f64. New values may be written over the
// old ones.
#pragma once

#include <cstddef>

#include "drivers/cpu/common/typed_ops.h"

namespace anymps::cpu {

inline constexpr size_t kMostStates = 3;

template <typename A>
struct StepRun {
  const A *values = nullptr, *gradient = nullptr, *states[kMostStates] = {};  // null: absent
  A *new_values = nullptr, *new_states[kMostStates] = {};
  size_t n = 0;
  // What a step needs of its attributes and scalars.
  A sign = 1;   // of the gradient, over its scale
  A decay = 0;  // added to the gradient, times the values
  A keep = 1;   // the values are multiplied with it before the step
  A rate = 0;
  A a = 0, a1 = 0, b = 0, b1 = 0;  // factors of the first and second state, and of what is new
  A root = 1, epsilon = 0;
  bool nesterov = false;
};

template <typename A>
struct StepOps {
  void (*sgd)(const StepRun<A>& run);   // states: momentum; its new value may be made from nothing
  void (*adam)(const StepRun<A>& run);  // momentum, velocity, maximum
  void (*adagrad)(const StepRun<A>& run);   // sum
  void (*rmsprop)(const StepRun<A>& run);   // square, mean, momentum
  void (*adadelta)(const StepRun<A>& run);  // square, delta
  void (*lion)(const StepRun<A>& run);      // momentum
  // y = x * scale; true if all of x is finite.
  bool (*unscale)(const A* x, A scale, A* y, size_t n);
};

const TypedOps<StepOps>& all_step_ops();
template <typename A>
const StepOps<A>& step_ops() {
  return all_step_ops().template of<A>();
}

}  // namespace anymps::cpu
