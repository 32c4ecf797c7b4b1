// SPDX-License-Identifier: Apache-2.0
// Reference reductions against values worked out by hand, with the edges where libraries disagree.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Axes = std::vector<int64_t>;

const TestTensor& matrix() {
  static const TestTensor x(DType::kF32, {2, 3}, {1, -2, 3, 4, 5, -6});
  return x;
}

struct ReductionCase {
  const char* op;
  std::vector<double> rows, columns, all;
};

TEST(ReferenceReduction, RowsColumnsAndAll) {
  const std::vector<ReductionCase> cases = {
      {"reduce_sum", {2, 3}, {5, 3, -3}, {5}},
      {"reduce_mean", {2.0 / 3, 1}, {2.5, 1.5, -1.5}, {5.0 / 6}},
      {"reduce_max", {3, 5}, {4, 5, 3}, {5}},
      {"reduce_min", {-2, -6}, {1, -2, -6}, {-6}},
      {"reduce_prod", {-6, -120}, {4, -10, -18}, {720}},
      {"reduce_l1", {6, 15}, {5, 7, 9}, {21}},
      {"reduce_l2",
       {3.741657387, 8.774964387},
       {4.123105626, 5.385164807, 6.708203932},
       {9.539392014}},
      {"reduce_sum_square", {14, 77}, {17, 29, 45}, {91}},
      {"reduce_log_sum",
       {0.6931471806, 1.098612289},
       {1.609437912, 1.098612289, kNan},
       {1.609437912}},
      {"reduce_log_sum_exp",
       {3.132845288, 5.313274136},
       {4.048587352, 5.000911466, 3.000123402},
       {5.420326756}},
  };
  for (const ReductionCase& c : cases) {
    const auto run = [&](Axes axes) {
      return run_reference(c.op, {matrix().scrambled()}, {{"axes", axes}});
    };
    EXPECT_TRUE(same(run({1}), TestTensor(DType::kF32, {2, 1}, c.rows), 1e-6)) << c.op;
    EXPECT_TRUE(same(run({-2}), TestTensor(DType::kF32, {1, 3}, c.columns), 1e-6)) << c.op;
    EXPECT_TRUE(same(run({}), TestTensor(DType::kF32, {1, 1}, c.all), 1e-6)) << c.op;
  }
}

TEST(ReferenceReduction, DimsAreDropped) {
  const TestTensor x = TestTensor(DType::kF32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(same(run_reference("reduce_sum", {x}, {{"axes", Axes{0, 2}}, {"keep_dims", false}}),
                   TestTensor(DType::kF32, {2}, {14, 22})));
  EXPECT_TRUE(same(run_reference("reduce_sum", {x}, {{"keep_dims", false}}),
                   TestTensor(DType::kF32, {}, {36})));
  EXPECT_TRUE(same(run_reference("reduce_max", {TestTensor(DType::kF32, {}, {7})}),
                   TestTensor(DType::kF32, {}, {7})));
}

TEST(ReferenceReduction, NothingReducesToTheNeutralElement) {
  const auto run = [](const char* op, DType dtype) {
    return run_reference(op, {TestTensor(dtype, {2, 0})}, {{"axes", Axes{1}}});
  };
  const auto both = [](DType dtype, double value) {
    return TestTensor(dtype, {2, 1}, {value, value});
  };
  EXPECT_TRUE(same(run("reduce_sum", DType::kF32), both(DType::kF32, 0)));
  EXPECT_TRUE(same(run("reduce_prod", DType::kF32), both(DType::kF32, 1)));
  EXPECT_TRUE(same(run("reduce_mean", DType::kF32), both(DType::kF32, kNan)));
  EXPECT_TRUE(same(run("reduce_mean", DType::kI32), both(DType::kI32, 0)));
  EXPECT_TRUE(same(run("reduce_max", DType::kF16), both(DType::kF16, -kInf)));
  EXPECT_TRUE(same(run("reduce_min", DType::kF64), both(DType::kF64, kInf)));
  EXPECT_TRUE(same(run("reduce_max", DType::kI8), both(DType::kI8, -128)));
  EXPECT_TRUE(same(run("reduce_min", DType::kU8), both(DType::kU8, 255)));
  EXPECT_TRUE(same(run("reduce_log_sum_exp", DType::kF32), both(DType::kF32, -kInf)));
  EXPECT_TRUE(same(run("reduce_and", DType::kBool), both(DType::kBool, 1)));
  EXPECT_TRUE(same(run("reduce_or", DType::kBool), both(DType::kBool, 0)));
}

TEST(ReferenceReduction, NanAndInfinity) {
  const TestTensor x(DType::kF32, {3}, {1, kNan, 2});
  EXPECT_TRUE(same(run_reference("reduce_max", {x}), TestTensor(DType::kF32, {1}, {kNan})));
  EXPECT_TRUE(same(run_reference("reduce_max", {x}, {{"propagate_nan", false}}),
                   TestTensor(DType::kF32, {1}, {2})));
  EXPECT_TRUE(same(run_reference("reduce_min", {x}, {{"propagate_nan", false}}),
                   TestTensor(DType::kF32, {1}, {1})));
  const auto log_sum_exp = [](std::vector<double> values) {
    const auto count = static_cast<int64_t>(values.size());
    return run_reference("reduce_log_sum_exp", {TestTensor(DType::kF32, {count}, values)})
        .values()[0];
  };
  EXPECT_NEAR(log_sum_exp({1000, 1000}), 1000.693147, 1e-3);
  EXPECT_EQ(log_sum_exp({-kInf, -kInf}), -kInf);
  EXPECT_EQ(log_sum_exp({kInf, 1}), kInf);
}

TEST(ReferenceReduction, HalvesAccumulateExactly) {
  // 4096 ones and a half: a sum kept in f16 would stop at 2048.
  std::vector<double> values(4096, 1);
  EXPECT_EQ(run_reference("reduce_sum", {TestTensor(DType::kF16, {4096}, values)}).values()[0],
            4096);
  EXPECT_EQ(run_reference("reduce_mean", {TestTensor(DType::kBF16, {4096}, values)}).values()[0],
            1);
}

TEST(ReferenceReduction, IntegersWrapButMeansDoNot) {
  const auto x = TestTensor::of<int8_t>({3}, {100, 100, 100});
  EXPECT_EQ(run_reference("reduce_sum", {x}).values()[0], 44);
  EXPECT_EQ(run_reference("reduce_mean", {x}).values()[0], 100);
  EXPECT_EQ(run_reference("reduce_mean", {TestTensor::of<int32_t>({2}, {-1, -2})}).values()[0], -1);
}

TEST(ReferenceReduction, Booleans) {
  const TestTensor x(DType::kBool, {2, 2}, {1, 0, 1, 1});
  const NamedAttrs rows = {{"axes", Axes{1}}, {"keep_dims", false}};
  EXPECT_TRUE(same(run_reference("reduce_and", {x}, rows), TestTensor(DType::kBool, {2}, {0, 1})));
  EXPECT_TRUE(same(run_reference("reduce_or", {x}, rows), TestTensor(DType::kBool, {2}, {1, 1})));
  EXPECT_TRUE(same(run_reference("reduce_max", {x}, rows), TestTensor(DType::kBool, {2}, {1, 1})));
  EXPECT_TRUE(same(run_reference("reduce_min", {x}, rows), TestTensor(DType::kBool, {2}, {0, 1})));
}

TEST(ReferenceReduction, ComplexSums) {
  const auto x = TestTensor::of<Complex>({2}, {{1, 2}, {3, -4}});
  EXPECT_TRUE(same(run_reference("reduce_sum", {x}), TestTensor::of<Complex>({1}, {{4, -2}})));
  EXPECT_TRUE(same(run_reference("reduce_mean", {x}), TestTensor::of<Complex>({1}, {{2, -1}})));
  EXPECT_TRUE(same(run_reference("reduce_prod", {x}), TestTensor::of<Complex>({1}, {{11, 2}})));
}

TEST(ReferenceReduction, PositionsOfExtrema) {
  const TestTensor x(DType::kF32, {2, 4}, {3, 9, 9, 1, kNan, 7, kNan, 0});
  const auto run = [&](const char* op, bool last) {
    return run_reference(op, {x.scrambled()},
                         {{"axis", 1}, {"keep_dims", false}, {"select_last", last}});
  };
  EXPECT_TRUE(same(run("arg_max", false), TestTensor(DType::kI64, {2}, {1, 0})));
  EXPECT_TRUE(same(run("arg_max", true), TestTensor(DType::kI64, {2}, {2, 2})));
  EXPECT_TRUE(same(run("arg_min", false), TestTensor(DType::kI64, {2}, {3, 0})));
  EXPECT_TRUE(same(run("arg_min", true), TestTensor(DType::kI64, {2}, {3, 2})));
  EXPECT_TRUE(same(run_reference("arg_max", {TestTensor(DType::kU8, {3, 1}, {5, 200, 7})}),
                   TestTensor(DType::kI64, {1, 1}, {1})));
  EXPECT_EQ(error_of([] {
              run_reference("arg_max", {TestTensor(DType::kF32, {2, 0})}, {{"axis", 1}});
            }),
            "[arg_max] axis 1 of [2, 0] is empty: it has no extremum");
}

TEST(ReferenceReduction, RunningSums) {
  const TestTensor x(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](int axis, bool exclusive, bool reverse) {
    return run_reference("cumsum", {x.scrambled()},
                         {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
  };
  const auto expect = [](std::vector<double> values) {
    return TestTensor(DType::kF32, {2, 3}, values);
  };
  EXPECT_TRUE(same(run(1, false, false), expect({1, 3, 6, 4, 9, 15})));
  EXPECT_TRUE(same(run(1, true, false), expect({0, 1, 3, 0, 4, 9})));
  EXPECT_TRUE(same(run(1, false, true), expect({6, 5, 3, 15, 11, 6})));
  EXPECT_TRUE(same(run(1, true, true), expect({5, 3, 0, 11, 6, 0})));
  EXPECT_TRUE(same(run(0, false, false), expect({1, 2, 3, 5, 7, 9})));
  EXPECT_TRUE(same(run_reference("cumsum", {TestTensor::of<int8_t>({2}, {127, 1})}),
                   TestTensor::of<int8_t>({2}, {127, -128})));
}

TEST(ReferenceReduction, BadAxes) {
  EXPECT_EQ(error_of([] {
              run_reference("reduce_sum", {matrix()}, {{"axes", Axes{2}}});
            }),
            "[reduce_sum] axis 2 is out of range for rank 2");
  EXPECT_EQ(error_of([] {
              run_reference("reduce_sum", {matrix()}, {{"axes", Axes{1, -1}}});
            }),
            "[reduce_sum] axis -1 is given twice");
}

}  // namespace
}  // namespace anymps::testing
