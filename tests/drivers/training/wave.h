// SPDX-License-Identifier: Apache-2.0
// Inputs that another program can make too: element i is sin(0.37 * i + phase).
#pragma once

#include "support/tensor.h"

namespace anymps::testing {

inline TestTensor wave(Shape shape, double phase, double shift = 0) {
  Row values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(std::sin(0.37 * static_cast<double>(i) + phase) + shift);
  return f64(std::move(shape), values);
}

inline void expect_all(const std::vector<TestTensor>& actual,
                       const std::vector<TestTensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(same(actual[i], expected[i], 1e-11)) << "output " << i;
}

}  // namespace anymps::testing
