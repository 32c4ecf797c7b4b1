// SPDX-License-Identifier: Apache-2.0
// The vector forms of special functions, densely over their ranges: each result beside its own
// size, in units of f32's precision.
#include "drivers/cpu/run_cpu.h"

namespace anymps::testing {
namespace {

constexpr int64_t kPoints = 20000;

// Steps in x, or in its logarithm for a positive range.
std::vector<double> points(double low, double high, bool logarithmic) {
  std::vector<double> all;
  for (int64_t i = 0; i < kPoints; ++i) {
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(kPoints);
    all.push_back(logarithmic ? low * std::pow(high / low, part) : low + (high - low) * part);
  }
  return all;
}

// The largest error over |expected| + floor.
double largest_error(const char* op, TestInputs inputs, double floor) {
  const std::vector<double> expected = run_reference(op, inputs).values();
  const Prepared prepared = prepare_cpu(op, inputs);
  if (!prepared.kernel) return kInf;
  const std::vector<double> actual = run(prepared, inputs)[0].values();
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    const double error = std::abs(actual[i] - expected[i]) / (std::abs(expected[i]) + floor);
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

struct Range {
  const char* op;
  double low, high;
  bool logarithmic;
  double tolerance;
};

TEST(CpuSpecial, FunctionsOfOneNumber) {
  const std::vector<Range> ranges = {
      {"lgamma", 1e-20, 1e20, true, 3e-7}, {"lgamma", 0.5, 3, false, 3e-7},
      {"lgamma", -10, 0, false, 1e-6},     {"digamma", 1e-20, 1e20, true, 3e-7},
      {"digamma", 1, 3, false, 3e-7},      {"erfc", -4, 9, false, 5e-6},
      {"erfinv", -1, 1, false, 1e-6},      {"erfinv", 1e-30, 0.5, true, 1e-6},
      {"i0", -9, 9, false, 1e-6},          {"i0", 8, 88, false, 1e-6},
      {"logit", 1e-30, 1, true, 1e-6},     {"logit", 0.2, 0.8, false, 1e-6},
      {"sinc", -0.9, 0.9, false, 1e-6},    {"log_sigmoid", -80, 20, false, 1e-6},
  };
  for (const auto& [op, low, high, logarithmic, tolerance] : ranges) {
    const TestTensor x(DType::kF32, {kPoints}, points(low, high, logarithmic));
    EXPECT_LT(largest_error(op, {x}, 1e-37), tolerance) << op << " from " << low << " to " << high;
  }
  const TestTensor x(DType::kF32, {kPoints}, points(-40, 40, false));
  EXPECT_LT(largest_error("sinc", {x}, 0.01), 1e-5);  // among zeros
}

TEST(CpuSpecial, FunctionsOfTwoNumbers) {
  const TestTensor a(DType::kF32, {kPoints}, points(1e-20, 1e19, true)),
      b(DType::kF32, {kPoints}, points(3, 50, false)),
      c(DType::kF32, {kPoints}, points(-50, 60, false));
  EXPECT_LT(largest_error("hypot", {a, b}, 0), 3e-7);
  EXPECT_LT(largest_error("hypot", {c, b}, 0), 3e-7);
  EXPECT_LT(largest_error("logaddexp", {c, b}, 0), 1e-6);
  EXPECT_LT(largest_error("xlogy", {c, a}, 1), 1e-6);
  // Remainders have no error, however large the quotient.
  EXPECT_EQ(largest_error("mod", {a, b}, 0), 0);
  EXPECT_EQ(largest_error("mod", {c, b}, 0), 0);
  EXPECT_EQ(largest_error("mod", {b, a}, 0), 0);
}

}  // namespace
}  // namespace anymps::testing
