// SPDX-License-Identifier: Apache-2.0
// Casts from and to narrow types and strings, with numbers of NumPy and of ONNX's rules.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor cast(TestTensor x, DType to, NamedAttrs attrs = {}) {
  attrs.emplace_back("dtype", to);
  return run_reference("cast", {std::move(x)}, attrs);
}

TEST(Cast, ToNarrowAndBack) {
  const TestTensor x(DType::kF32, {6}, {0.1, -3.3, 500, 1e-4, 17, -0.0});
  EXPECT_EQ(cast(x, DType::kF8E4M3).values(),
            (std::vector<double>{0.1015625, -3.25, 448, 0, 17 - 1, -0.0}));
  EXPECT_EQ(cast(x, DType::kF4E2M1).values(), (std::vector<double>{0, -3, 6, 0, 6, -0.0}));
  EXPECT_EQ(cast(x, DType::kI4).values(), (std::vector<double>{0, -3, 4, 0, 1, 0}));
  EXPECT_TRUE(std::isnan(cast(x, DType::kF8E4M3, {{"saturate", false}}).values()[2]));
  const TestTensor i4(DType::kI4, {3}, {-8, 7, 3});
  EXPECT_EQ(cast(i4, DType::kI8).values(), (std::vector<double>{-8, 7, 3}));
  EXPECT_EQ(cast(i4, DType::kU8).values(), (std::vector<double>{0, 7, 3}));
  EXPECT_EQ(cast(i4, DType::kF16).values(), (std::vector<double>{-8, 7, 3}));
  EXPECT_EQ(cast(i4, DType::kF8E5M2).values(), (std::vector<double>{-8, 7, 3}));
}

TEST(Cast, LargeIntegersWrapExactly) {
  const auto x = TestTensor::of<int64_t>({2}, {(int64_t{1} << 60) + 5, -1});
  EXPECT_EQ(cast(x, DType::kU4).values(), (std::vector<double>{5, 15}));
  EXPECT_EQ(cast(x, DType::kString).texts(),
            (std::vector<std::string>{"1152921504606846981", "-1"}));
}

TEST(Cast, NumbersAndStrings) {
  EXPECT_EQ(
      cast(TestTensor(DType::kF32, {5}, {0.1, 1, NAN, -INFINITY, 1e20}), DType::kString).texts(),
      (std::vector<std::string>{"0.1", "1", "NaN", "-INF", "1e+20"}));
  const auto x = TestTensor::texts({6}, {"3.14", "1E8", "-inf", "nan", " +7 ", "1e-5"});
  const auto numbers = cast(x, DType::kF32).values();
  EXPECT_EQ(numbers[0], double{3.14f});
  EXPECT_EQ(numbers[1], 1e8);
  EXPECT_EQ(numbers[2], -INFINITY);
  EXPECT_TRUE(std::isnan(numbers[3]));
  EXPECT_EQ(numbers[4], 7);
  EXPECT_EQ(numbers[5], double{1e-5f});
  EXPECT_EQ(
      cast(TestTensor::texts({2}, {"-9223372036854775808", "2.9"}), DType::kI64).data<int64_t>()[0],
      INT64_MIN);
  EXPECT_EQ(cast(TestTensor::texts({1}, {"18446744073709551615"}), DType::kU64).data<uint64_t>()[0],
            UINT64_MAX);
  EXPECT_NE(error_of([] {
              cast(TestTensor::texts({1}, {"12a"}), DType::kF32);
            }).find("\"12a\" is not a number"),
            std::string::npos);
}

TEST(Cast, EqualAndMovedStrings) {
  const auto a = TestTensor::texts({2, 2}, {"a", "", "b", "ab"});
  const auto b = TestTensor::texts({2}, {"a", "ab"});
  EXPECT_EQ(run_reference("equal", {a, b}).values(), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(run_reference("not_equal", {a, b}).values(), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(run_reference("transpose", {a}).texts(),
            (std::vector<std::string>{"a", "b", "", "ab"}));
}

}  // namespace
}  // namespace anymps::testing
