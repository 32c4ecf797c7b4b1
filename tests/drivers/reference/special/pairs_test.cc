// SPDX-License-Identifier: Apache-2.0
// Arithmetic of pairs and triples, and the parts of floats, against numbers by hand and from
// PyTorch.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

struct ArithmeticCase {
  const char* op;
  std::vector<double> a, b, y;
};

TEST(ReferencePairs, Floats) {
  const std::vector<ArithmeticCase> cases = {
      {"hypot",
       {3, -5, 3e38, 1e-30, kInf, kNan, 0},
       {4, 12, 0, 0, kNan, 1, 0},
       {5, 13, 3e38, 1e-30, kInf, kNan, 0}},
      {"copysign", {1, -2, 3, 0, kInf}, {-1, 2, -0.0, -3, -kNan}, {-1, 2, -3, -0.0, -kInf}},
      {"heaviside",
       {-1, 0, -0.0, 2, kNan, -kInf, kInf},
       {5, 5, 0.5, 5, 5, 5, 5},
       {0, 5, 0.5, 1, 0, 0, 1}},
      {"logaddexp",
       {0, 1, -1000, 1000, kInf, -kInf, -kInf, kNan, kInf},
       {0, 3, -1000, 0, kInf, -kInf, 2, 1, -kInf},
       {0.69314718055994531, 3.1269280110429726, -999.30685281944005, 1000, kInf, -kInf, 2, kNan,
        kInf}},
      {"logaddexp2",
       {0, 1, -1000, -kInf, kNan},
       {0, 3, -1000, -kInf, 1},
       {1, 3.3219280948873623, -999, -kInf, kNan}},
      {"ldexp",
       {1, 3, -0.5, 1, 1e-38, kInf, kNan, 1},
       {4, -1, 2, 0.5, 140, -3, 1, -kInf},
       {16, 1.5, -2, 1.4142135623730951, 13937.965749081639, kInf, kNan, 0}},
  };
  for (const ArithmeticCase& c : cases)
    EXPECT_TRUE(same(run_reference(c.op, {f32s(c.a), f32s(c.b)}), f32s(c.y), 2e-7)) << c.op;
  // 2^1100 is no double, the product is one.
  const TestTensor y = run_reference(
      "ldexp", {TestTensor(DType::kF64, {1}, {0x1p-1000}), TestTensor(DType::kF64, {1}, {1100})});
  EXPECT_EQ(y.values()[0], 0x1p100);
}

TEST(ReferencePairs, Divisors) {
  const auto i64 = [](std::vector<int64_t> v) { return TestTensor::of<int64_t>({6}, v); };
  const TestTensor a = i64({12, -12, 0, 0, 7, INT64_MIN}), b = i64({18, 8, 5, 0, -7, 6});
  EXPECT_TRUE(same(run_reference("gcd", {a, b}), i64({6, 4, 5, 0, 7, 2})));
  EXPECT_TRUE(same(run_reference("lcm", {a, b}), i64({36, 24, 0, 0, 7, INT64_MIN})));
  const auto i8 = [](std::vector<int8_t> v) { return TestTensor::of<int8_t>({3}, v); };
  EXPECT_TRUE(
      same(run_reference("gcd", {i8({-128, -128, 100}), i8({0, 96, 75})}), i8({-128, 32, 25})));
  const auto u8 = [](std::vector<uint8_t> v) { return TestTensor::of<uint8_t>({2}, v); };
  EXPECT_TRUE(same(run_reference("lcm", {u8({200, 12}), u8({150, 18})}), u8({88, 36})));
}

TEST(ReferencePairs, Triples) {
  const TestTensor a = f32s({1, 2, 0}), b = f32s({3, -2, 1}), c = f32s({0.25, 2, 1});
  EXPECT_EQ(run_reference("lerp", {a, b, c}).values(), (std::vector<double>{1.5, -6, 1}));
  EXPECT_EQ(run_reference("addcmul", {a, b, c}, {{"value", 2.0}}).values(),
            (std::vector<double>{2.5, -6, 2}));
  EXPECT_EQ(run_reference("addcdiv", {a, b, c}, {{"value", 0.5}}).values(),
            (std::vector<double>{7, 1.5, 0.5}));
}

TEST(ReferencePairs, NeighboursOfFloats) {
  const auto next = [](DType dtype, double from, double to) {
    return run_reference("nextafter",
                         {TestTensor(dtype, {1}, {from}), TestTensor(dtype, {1}, {to})})
        .values()[0];
  };
  EXPECT_EQ(next(DType::kF64, 1, 2), 1 + 0x1p-52);
  EXPECT_EQ(next(DType::kF32, 1, 2), 1 + 0x1p-23);
  EXPECT_EQ(next(DType::kF16, 1, 2), 1 + 0x1p-10);
  EXPECT_EQ(next(DType::kF16, 1, -2), 1 - 0x1p-11);
  EXPECT_EQ(next(DType::kBF16, -1, -2), -1 - 0x1p-7);
  EXPECT_EQ(next(DType::kBF16, -1, 0), -1 + 0x1p-8);
  EXPECT_EQ(next(DType::kF16, 65504, kInf), kInf);
  EXPECT_EQ(next(DType::kF16, 0, -1), -0x1p-24);
  EXPECT_EQ(next(DType::kF16, 3, 3), 3);
  EXPECT_TRUE(std::isnan(next(DType::kF16, kNan, 3)));
  EXPECT_TRUE(std::isnan(next(DType::kF32, 1, kNan)));
}

TEST(ReferencePairs, FractionAndExponent) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    const auto parts =
        run_reference_all("frexp", {TestTensor(dtype, {6}, {3, -0.25, 1, 0, kInf, kNan})});
    EXPECT_TRUE(same(parts[0], TestTensor(dtype, {6}, {0.75, -0.5, 0.5, 0, kInf, kNan})));
    EXPECT_EQ(parts[1].values(), (std::vector<double>{2, -1, 1, 0, 0, 0})) << name(dtype);
  }
}

TEST(ReferencePairs, NumbersInPlaceOfNan) {
  const std::vector<double> x = {kNan, kInf, -kInf, 2.5};
  EXPECT_EQ(run_reference("nan_to_num", {TestTensor(DType::kF16, {4}, x)}).values(),
            (std::vector<double>{0, 65504, -65504, 2.5}));
  EXPECT_EQ(run_reference("nan_to_num", {TestTensor(DType::kBF16, {4}, x)}).values(),
            (std::vector<double>{0, 0x1.fep127, -0x1.fep127, 2.5}));
  EXPECT_EQ(run_reference("nan_to_num", {TestTensor(DType::kF32, {4}, x)},
                          {{"nan", 1.0}, {"posinf", 7.0}, {"neginf", -8.0}})
                .values(),
            (std::vector<double>{1, 7, -8, 2.5}));
}

TEST(ReferencePairs, Activations) {
  const TestTensor x = f32s({-2, -0.5, 0.5, 3, kNan});
  EXPECT_TRUE(same(run_reference("hardshrink", {x}), f32s({-2, 0, 0, 3, kNan})));
  EXPECT_TRUE(same(run_reference("threshold", {x}, {{"alpha", 0.5}, {"value", 9.0}}),
                   f32s({9, 9, 9, 3, kNan})));
  EXPECT_TRUE(
      same(run_reference("glu", {TestTensor(DType::kF32, {2, 2}, {1, -2, 0, 1})}, {{"axis", 0}}),
           TestTensor(DType::kF32, {1, 2}, {0.5, -1.4621171572600098}), 2e-7));
  EXPECT_EQ(error_of([&] { run_reference("glu", {x}); }),
            "[glu] axis 0 has the extent 5, which is odd");
  EXPECT_TRUE(same(run_reference("log_sigmoid", {f32s({-200, 0, 2, kInf, -kInf})}),
                   f32s({-200, -0.69314718055994531, -0.12692801104297249, 0, -kInf}), 2e-7));
}

}  // namespace
}  // namespace anymps::testing
