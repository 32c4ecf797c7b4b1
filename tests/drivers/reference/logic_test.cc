// SPDX-License-Identifier: Apache-2.0
// Reference comparisons, logic, choices and conversions against values worked out by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor vec(DType dtype, std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return TestTensor(dtype, {count}, values);
}
TestTensor bools(std::vector<double> values) { return vec(DType::kBool, std::move(values)); }

TEST(ReferenceComparison, ComparesAsIeee754) {
  const TestTensor a = f32s({1, 2, 3, kNan, kInf}), b = f32s({2, 2, 2, kNan, kInf});
  EXPECT_TRUE(same(run_reference("equal", {a, b}), bools({0, 1, 0, 0, 1})));
  EXPECT_TRUE(same(run_reference("not_equal", {a, b}), bools({1, 0, 1, 1, 0})));
  EXPECT_TRUE(same(run_reference("less", {a, b}), bools({1, 0, 0, 0, 0})));
  EXPECT_TRUE(same(run_reference("less_equal", {a, b}), bools({1, 1, 0, 0, 1})));
  EXPECT_TRUE(same(run_reference("greater", {a, b}), bools({0, 0, 1, 0, 0})));
  EXPECT_TRUE(same(run_reference("greater_equal", {a, b}), bools({0, 1, 1, 0, 1})));
}

TEST(ReferenceComparison, IntegersKeepTheirSignAndWidth) {
  const auto u64 = TestTensor::of<uint64_t>({2}, {UINT64_MAX, UINT64_MAX - 1});
  EXPECT_TRUE(same(run_reference("greater", {u64, TestTensor::of<uint64_t>({}, {UINT64_MAX - 1})}),
                   bools({1, 0})));
  EXPECT_TRUE(same(run_reference("less", {vec(DType::kI8, {-1, 1}), vec(DType::kI8, {0, 0})}),
                   bools({1, 0})));
  const auto complex = TestTensor::of<Complex>({2}, {{1, 2}, {1, 3}});
  EXPECT_TRUE(same(run_reference("equal", {complex, TestTensor::of<Complex>({}, {{1, 2}})}),
                   bools({1, 0})));
}

TEST(ReferenceComparison, KindsOfFloats) {
  const TestTensor x = f32s({0, kNan, kInf, -kInf});
  EXPECT_TRUE(same(run_reference("is_nan", {x}), bools({0, 1, 0, 0})));
  EXPECT_TRUE(same(run_reference("is_finite", {x}), bools({1, 0, 0, 0})));
  EXPECT_TRUE(same(run_reference("is_inf", {x}), bools({0, 0, 1, 1})));
  EXPECT_TRUE(same(run_reference("is_inf", {x}, {{"negative", false}}), bools({0, 0, 1, 0})));
  EXPECT_TRUE(same(run_reference("is_inf", {x}, {{"positive", false}}), bools({0, 0, 0, 1})));
}

TEST(ReferenceLogic, TruthTables) {
  const TestTensor a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  const std::vector<std::pair<const char*, std::vector<double>>> tables = {
      {"logical_and", {0, 0, 0, 1}},  {"logical_or", {0, 1, 1, 1}},  {"logical_xor", {0, 1, 1, 0}},
      {"logical_nand", {1, 1, 1, 0}}, {"logical_nor", {1, 0, 0, 0}}, {"logical_xnor", {1, 0, 0, 1}},
  };
  for (const auto& [op, expected] : tables)
    EXPECT_TRUE(same(run_reference(op, {a, b}), bools(expected))) << op;
  EXPECT_TRUE(same(run_reference("logical_not", {b}), bools({1, 0, 1, 0})));
}

TEST(ReferenceLogic, AnyNonzeroByteIsTrue) {
  TestTensor x(DType::kBool, {2});
  x.data<uint8_t>()[0] = 2;
  EXPECT_TRUE(same(run_reference("logical_not", {x}), bools({0, 1})));
}

TEST(ReferenceLogic, WhereBroadcastsAllThree) {
  const TestTensor cond(DType::kBool, {2, 1}, {1, 0});
  const TestTensor y =
      run_reference("where", {cond, f32s({1, 2, 3}), TestTensor(DType::kF32, {}, {9})});
  EXPECT_TRUE(same(y, TestTensor(DType::kF32, {2, 3}, {1, 2, 3, 9, 9, 9})));
  for (DType dtype : {DType::kF16, DType::kI8, DType::kU64, DType::kBool, DType::kC64})
    EXPECT_TRUE(
        same(run_reference("where", {bools({0, 1}), vec(dtype, {1, 1}), vec(dtype, {0, 0})}),
             vec(dtype, {0, 1})))
        << name(dtype);
}

TEST(ReferenceLogic, ClampTakesTensorsBeforeAttributes) {
  const TestTensor x = f32s({-3, -0.5, 0.5, 3, kNan});
  const TestTensor low(DType::kF32, {}, {-1}), high(DType::kF32, {}, {1});
  const TestTensor expected = f32s({-1, -0.5, 0.5, 1, kNan});
  EXPECT_TRUE(same(run_reference("clamp", {x, low, high}), expected));
  EXPECT_TRUE(same(run_reference("clamp", {x}, {{"min", -1}, {"max", 1}}), expected));
  EXPECT_TRUE(same(run_reference("clamp", {x, low, high}, {{"min", -9}, {"max", 9}}), expected));
  EXPECT_TRUE(
      same(run_reference("clamp", {x, std::nullopt, high}), f32s({-3, -0.5, 0.5, 1, kNan})));
  EXPECT_TRUE(same(run_reference("clamp", {x}), x));
  EXPECT_TRUE(same(run_reference("clamp", {vec(DType::kU8, {0, 7, 255})}, {{"min", 3}}),
                   vec(DType::kU8, {3, 7, 255})));
  EXPECT_TRUE(same(run_reference("clamp", {f32s({0, 5})}, {{"min", 3}, {"max", 1}}), f32s({1, 1})));
}

TEST(ReferenceCast, FloatsToIntegersTruncateAndClamp) {
  const TestTensor x = f32s({-1.9, 1.9, 300, -300, kNan, kInf, -kInf});
  const auto cast = [&](DType dtype) { return run_reference("cast", {x}, {{"dtype", dtype}}); };
  EXPECT_TRUE(same(cast(DType::kI8), vec(DType::kI8, {-1, 1, 127, -128, 0, 127, -128})));
  EXPECT_TRUE(same(cast(DType::kU8), vec(DType::kU8, {0, 1, 255, 0, 0, 255, 0})));
  EXPECT_EQ(cast(DType::kI64).data<int64_t>()[5], INT64_MAX);
  EXPECT_EQ(cast(DType::kI64).data<int64_t>()[6], INT64_MIN);
  EXPECT_EQ(cast(DType::kU64).data<uint64_t>()[5], UINT64_MAX);
}

TEST(ReferenceCast, OtherPairs) {
  const auto cast = [](const TestTensor& x, DType to) {
    return run_reference("cast", {x}, {{"dtype", to}});
  };
  EXPECT_TRUE(
      same(cast(vec(DType::kI32, {257, -1, 128}), DType::kI8), vec(DType::kI8, {1, -1, -128})));
  EXPECT_TRUE(same(cast(vec(DType::kI8, {-1, 5}), DType::kU16), vec(DType::kU16, {65535, 5})));
  EXPECT_TRUE(same(cast(f32s({0, -0.0, 0.5, kNan}), DType::kBool), bools({0, 0, 1, 1})));
  EXPECT_TRUE(same(cast(bools({0, 1}), DType::kF16), vec(DType::kF16, {0, 1})));
  EXPECT_TRUE(
      same(cast(f32s({65504, 65520, 1e-8}), DType::kF16), vec(DType::kF16, {65504, kInf, 0})));
  EXPECT_TRUE(
      same(cast(TestTensor::of<Complex>({1}, {{2.5f, 7}}), DType::kI32), vec(DType::kI32, {2})));
  EXPECT_TRUE(same(cast(f32s({2.5}), DType::kC64), TestTensor::of<Complex>({1}, {{2.5f, 0}})));
  EXPECT_EQ(cast(TestTensor::of<int64_t>({1}, {INT64_MAX}), DType::kF32).values()[0], 0x1p63);
  EXPECT_TRUE(same(cast(TestTensor(DType::kF32, {2, 2}, {1, 2, 3, 4}).scrambled(), DType::kI32),
                   TestTensor(DType::kI32, {2, 2}, {1, 2, 3, 4})));
}

TEST(ReferenceCast, EveryPairKeepsSmallNumbers) {
  for (const DType from : kComputeDTypes)
    for (const DType to : kComputeDTypes)
      EXPECT_TRUE(
          same(run_reference("cast", {vec(from, {0, 1})}, {{"dtype", to}}), vec(to, {0, 1})));
}

}  // namespace
}  // namespace anymps::testing
