// SPDX-License-Identifier: Apache-2.0
// Bits, by hand and from NumPy.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

template <typename T>
std::vector<double> binary(const char* op, const std::vector<T>& a, const std::vector<T>& b) {
  const Shape shape{static_cast<int64_t>(a.size())};
  return run_reference(op, {TestTensor::of<T>(shape, a), TestTensor::of<T>(shape, b)}).values();
}

TEST(ReferenceBitwise, Logic) {
  EXPECT_EQ(binary<int8_t>("bitwise_and", {12, -1, 85}, {10, 7, -86}), (Row{8, 7, 0}));
  EXPECT_EQ(binary<int8_t>("bitwise_or", {12, -1, 85}, {10, 7, -86}), (Row{14, -1, -1}));
  EXPECT_EQ(binary<int8_t>("bitwise_xor", {12, -1, 85}, {10, 7, -86}), (Row{6, -8, -1}));
  EXPECT_EQ(run_reference("bitwise_not", {TestTensor::of<uint8_t>({3}, {0, 1, 255})}).values(),
            (Row{255, 254, 0}));
  EXPECT_EQ(run_reference("bitwise_not", {TestTensor::of<int32_t>({2}, {0, -7})}).values(),
            (Row{-1, 6}));
}

TEST(ReferenceBitwise, Shifts) {
  EXPECT_EQ(binary<uint8_t>("left_shift", {1, 255, 3, 1}, {7, 4, 0, 8}), (Row{128, 240, 3, 0}));
  EXPECT_EQ(binary<uint8_t>("right_shift", {128, 255, 3, 1}, {7, 4, 0, 200}), (Row{1, 15, 3, 0}));
  EXPECT_EQ(binary<int16_t>("right_shift", {-8, -8, 8, -1}, {1, 40, 2, 3}), (Row{-4, -1, 2, -1}));
  EXPECT_EQ(binary<int64_t>("left_shift", {1, -3, 5}, {40, 2, -1}), (Row{1099511627776., -12, 0}));
}

TEST(ReferenceBitwise, PopulationCount) {
  EXPECT_EQ(
      run_reference("population_count", {TestTensor::of<int8_t>({4}, {0, -1, 7, -128})}).values(),
      (Row{0, 8, 3, 1}));
  EXPECT_EQ(run_reference("population_count", {TestTensor::of<int64_t>({1}, {-1})}).values(),
            (Row{64}));
}

TEST(ReferenceBitwise, FloatsAreRefused) {
  EXPECT_NE(error_of([] {
              run_reference("bitwise_not", {TestTensor(DType::kF32, {2})});
            }).find("[bitwise_not]"),
            std::string::npos);
}

}  // namespace
}  // namespace anymps::testing
