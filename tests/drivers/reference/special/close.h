// SPDX-License-Identifier: Apache-2.0
// How values of special functions are compared with those of another source.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace anymps::testing {

// Each result beside its own size, but for those that are sums of larger terms.
inline void expect_close(const char* op, const std::vector<double>& actual,
                         const std::vector<double>& expected, double relative, double absolute) {
  ASSERT_EQ(actual.size(), expected.size()) << op;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], b = expected[i];
    const bool good = std::isnan(b)   ? std::isnan(a)
                      : std::isinf(b) ? a == b
                                      : std::abs(a - b) <= relative * std::abs(b) + absolute;
    EXPECT_TRUE(good) << op << " " << i << fmt::format(": {:.17g}, expected {:.17g}", a, b);
  }
}

}  // namespace anymps::testing
