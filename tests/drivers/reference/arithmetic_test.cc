// SPDX-License-Identifier: Apache-2.0
// Reference arithmetic against numbers worked out by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

struct UnaryCase {
  const char* op;
  std::vector<double> x, y;
};

TEST(ReferenceArithmetic, UnaryFunctions) {
  const std::vector<UnaryCase> cases = {
      {"identity", {1.5, kNan, -kInf}, {1.5, kNan, -kInf}},
      {"exp", {0, 1, -1, kInf, -kInf}, {1, 2.718281828, 0.3678794412, kInf, 0}},
      {"exp2", {0, 3, -1}, {1, 8, 0.5}},
      {"exp10", {0, 2, -1}, {1, 100, 0.1}},
      {"expm1", {0, 1}, {0, 1.718281828}},
      {"log", {1, 2.718281828, 0, -1, kInf}, {0, 1, -kInf, kNan, kInf}},
      {"log2", {8, 0.25}, {3, -2}},
      {"log10", {1000, 0.1}, {3, -1}},
      {"log1p", {0, 1.718281828}, {0, 1}},
      {"square", {3, -1.5}, {9, 2.25}},
      {"sqrt", {9, 2, -1, 0}, {3, 1.414213562, kNan, 0}},
      {"rsqrt", {4, 0.25, 0}, {0.5, 2, kInf}},
      {"reciprocal", {4, -0.5, 0}, {0.25, -2, kInf}},
      {"abs", {-3, 2, -kInf}, {3, 2, kInf}},
      {"neg", {-3, 2}, {3, -2}},
      {"sign", {-3, 0, 7, kNan}, {-1, 0, 1, kNan}},
      {"ceil", {-1.5, 1.2, 3}, {-1, 2, 3}},
      {"floor", {-1.5, 1.2, 3}, {-2, 1, 3}},
      {"round", {-2.5, -0.5, 0.5, 1.5, 2.5, 2.4}, {-3, -1, 1, 2, 3, 2}},
      {"rint", {-2.5, -0.5, 0.5, 1.5, 2.5, 2.6}, {-2, 0, 0, 2, 2, 3}},
      {"trunc", {-1.9, 1.9}, {-1, 1}},
      {"sin", {0, 1.570796327}, {0, 1}},
      {"cos", {0, 3.141592654}, {1, -1}},
      {"tan", {0, 0.7853981634}, {0, 1}},
      {"sinh", {0, 1}, {0, 1.175201194}},
      {"cosh", {0, 1}, {1, 1.543080635}},
      {"tanh", {0, 1, kInf}, {0, 0.7615941560, 1}},
      {"asin", {1, 0, 2}, {1.570796327, 0, kNan}},
      {"acos", {1, 0}, {0, 1.570796327}},
      {"atan", {1, kInf}, {0.7853981634, 1.570796327}},
      {"asinh", {0, 1}, {0, 0.8813735870}},
      {"acosh", {1, 2}, {0, 1.316957897}},
      {"atanh", {0, 0.5, 1}, {0, 0.5493061443, kInf}},
      {"erf", {0, 1, -kInf}, {0, 0.8427007929, -1}},
  };
  for (const UnaryCase& c : cases)
    EXPECT_TRUE(same(run_reference(c.op, {f32s(c.x)}), f32s(c.y), 2e-7)) << c.op;
}

TEST(ReferenceArithmetic, EveryFloatTypeIsRoundedOnce) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF64}) {
    const TestTensor x(dtype, {3}, {0.25, 2, 9});
    EXPECT_TRUE(same(run_reference("sqrt", {x}), TestTensor(dtype, {3}, {0.5, std::sqrt(2.0), 3})))
        << name(dtype);
  }
}

TEST(ReferenceArithmetic, ComplexNumbers) {
  const auto a = TestTensor::of<Complex>({2}, {{1, 2}, {0, -1}});
  const auto b = TestTensor::of<Complex>({2}, {{3, -1}, {2, 0}});
  EXPECT_TRUE(same(run_reference("add", {a, b}), TestTensor::of<Complex>({2}, {{4, 1}, {2, -1}})));
  EXPECT_TRUE(same(run_reference("mul", {a, b}), TestTensor::of<Complex>({2}, {{5, 5}, {0, -2}})));
  EXPECT_TRUE(same(run_reference("div", {a, b}),
                   TestTensor::of<Complex>({2}, {{0.1f, 0.7f}, {0, -0.5f}}), 1e-6));
  EXPECT_TRUE(same(run_reference("neg", {a}), TestTensor::of<Complex>({2}, {{-1, -2}, {0, 1}})));
  const auto minus_four = TestTensor::of<Complex>({1}, {{-4, 0}});
  EXPECT_TRUE(same(run_reference("sqrt", {minus_four}), TestTensor::of<Complex>({1}, {{0, 2}})));
}

struct BinaryCase {
  const char* op;
  NamedAttrs attrs;
  std::vector<double> a, b, y;
};

TEST(ReferenceArithmetic, BinaryFunctions) {
  const std::vector<BinaryCase> cases = {
      {"add", {}, {1, kInf, kInf}, {2, 1, -kInf}, {3, kInf, kNan}},
      {"sub", {}, {1, 0.5}, {2, 0.25}, {-1, 0.25}},
      {"mul", {}, {3, 0}, {-2, kInf}, {-6, kNan}},
      {"div", {}, {1, 1, -1, 0}, {4, 0, 0, 0}, {0.25, kInf, -kInf, kNan}},
      {"div", {{"rounding", "trunc"}}, {7, -7}, {2, 2}, {3, -3}},
      {"div", {{"rounding", "floor"}}, {7, -7}, {2, 2}, {3, -4}},
      {"mod", {}, {5.5, -5.5, 5.5, 1}, {2, 2, -2, 0}, {1.5, -1.5, 1.5, kNan}},
      {"floor_mod", {}, {5.5, -5.5, 5.5, -4}, {2, 2, -2, 2}, {1.5, 0.5, -0.5, 0}},
      {"pow", {}, {2, 9, -8, 0}, {10, 0.5, 0.5, 0}, {1024, 3, kNan, 1}},
      {"min", {}, {1, kNan, 3}, {2, 1, kNan}, {1, kNan, kNan}},
      {"max", {}, {1, kNan, 3}, {2, 1, kNan}, {2, kNan, kNan}},
      {"min", {{"propagate_nan", false}}, {1, kNan, 3}, {2, 1, kNan}, {1, 1, 3}},
      {"max", {{"propagate_nan", false}}, {1, kNan, kNan}, {2, 1, kNan}, {2, 1, kNan}},
      {"atan2", {}, {1, -1, 0}, {1, -1, -1}, {0.7853981634, -2.356194490, 3.141592654}},
  };
  for (const BinaryCase& c : cases)
    EXPECT_TRUE(same(run_reference(c.op, {f32s(c.a), f32s(c.b)}, c.attrs), f32s(c.y), 2e-7))
        << c.op;
}

TEST(ReferenceArithmetic, IntegersWrap) {
  const auto i8 = [](std::vector<int8_t> v) { return TestTensor::of<int8_t>({3}, v); };
  EXPECT_TRUE(same(run_reference("add", {i8({127, -128, 1}), i8({1, -1, 2})}), i8({-128, 127, 3})));
  EXPECT_TRUE(
      same(run_reference("sub", {i8({-128, 0, 5}), i8({1, -128, 7})}), i8({127, -128, -2})));
  EXPECT_TRUE(same(run_reference("mul", {i8({64, -128, 3}), i8({2, -1, 3})}), i8({-128, -128, 9})));
  EXPECT_TRUE(same(run_reference("neg", {i8({-128, 5, 0})}), i8({-128, -5, 0})));
  EXPECT_TRUE(same(run_reference("abs", {i8({-128, -5, 5})}), i8({-128, 5, 5})));
  EXPECT_TRUE(same(run_reference("pow", {i8({2, -1, 3}), i8({7, -3, -1})}), i8({-128, -1, 0})));
  const auto u16 = [](std::vector<uint16_t> v) { return TestTensor::of<uint16_t>({1}, v); };
  EXPECT_TRUE(same(run_reference("mul", {u16({65535}), u16({65535})}), u16({1})));
  EXPECT_TRUE(same(run_reference("sub", {u16({0}), u16({1})}), u16({65535})));
}

TEST(ReferenceArithmetic, SixtyFourBitIntegersKeepEveryBit) {
  const int64_t big = (int64_t{1} << 62) + 1;
  const TestTensor sum = run_reference(
      "add", {TestTensor::of<int64_t>({1}, {big}), TestTensor::of<int64_t>({1}, {big})});
  EXPECT_EQ(sum.data<int64_t>()[0], std::numeric_limits<int64_t>::min() + 2);
}

TEST(ReferenceArithmetic, IntegerDivision) {
  const auto i32 = [](std::vector<int32_t> v) { return TestTensor::of<int32_t>({5}, v); };
  const TestTensor a = i32({7, -7, 7, -8, INT32_MIN}), b = i32({2, 2, -2, 2, -1});
  EXPECT_TRUE(same(run_reference("div", {a, b}), i32({3, -3, -3, -4, INT32_MIN})));
  EXPECT_TRUE(
      same(run_reference("div", {a, b}, {{"rounding", "floor"}}), i32({3, -4, -4, -4, INT32_MIN})));
  EXPECT_TRUE(same(run_reference("mod", {a, b}), i32({1, -1, 1, 0, 0})));
  EXPECT_TRUE(same(run_reference("floor_mod", {a, b}), i32({1, 1, -1, 0, 0})));
  const TestTensor zero = i32({1, 1, 0, 1, 1});
  EXPECT_EQ(error_of([&] { run_reference("div", {a, zero}); }), "[div] integer division by zero");
  EXPECT_EQ(error_of([&] { run_reference("mod", {a, zero}); }), "[mod] integer division by zero");
  EXPECT_EQ(error_of([&] {
              run_reference("floor_mod", {a, zero});
            }),
            "[floor_mod] integer division by zero");
}

TEST(ReferenceArithmetic, BroadcastsAndReadsAnyStrides) {
  const TestTensor a(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor b(DType::kF32, {2, 1}, {10, 20});
  const TestTensor expected(DType::kF32, {2, 3}, {11, 12, 13, 24, 25, 26});
  EXPECT_TRUE(same(run_reference("add", {a, b}), expected));
  EXPECT_TRUE(same(run_reference("add", {a.scrambled(), b.scrambled()}), expected));
  EXPECT_TRUE(same(run_reference("sub", {TestTensor(DType::kF32, {}, {1}), b}),
                   TestTensor(DType::kF32, {2, 1}, {-9, -19})));
}

// Zeros have the signs that C's <cmath> gives them.
TEST(ReferenceArithmetic, SignsOfZeros) {
  struct ZeroCase {
    const char* op;
    double y;  // of -0
  };
  const double minus = -0.0;
  for (const auto& [op, y] : std::vector<ZeroCase>{
           {"sin", minus},        {"tan", minus},      {"asin", minus},  {"atan", minus},
           {"sinh", minus},       {"tanh", minus},     {"asinh", minus}, {"atanh", minus},
           {"erf", minus},        {"expm1", minus},    {"log1p", minus}, {"sqrt", minus},
           {"ceil", minus},       {"floor", minus},    {"round", minus}, {"rint", minus},
           {"trunc", minus},      {"identity", minus}, {"neg", 0.0},     {"abs", 0.0},
           {"square", 0.0},       {"sign", 0.0},       {"cos", 1.0},     {"exp", 1.0},
           {"reciprocal", -kInf}, {"rsqrt", -kInf},    {"log", -kInf}})
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      const double x = run_reference(op, {TestTensor(dtype, {1}, {minus})}).get({0}).real();
      EXPECT_EQ(x, y) << op << " " << name(dtype);
      EXPECT_EQ(std::signbit(x), std::signbit(y)) << op << " " << name(dtype);
    }
}

TEST(ReferenceArithmetic, EmptyTensorsGiveEmptyTensors) {
  const TestTensor empty(DType::kF32, {0, 3});
  EXPECT_EQ(run_reference("add", {empty, TestTensor(DType::kF32, {3})}).shape(), (Shape{0, 3}));
  EXPECT_EQ(run_reference("exp", {empty}).shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace anymps::testing
