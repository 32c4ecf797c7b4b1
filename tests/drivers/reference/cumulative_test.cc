// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extrema; numbers from NumPy.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kTerms(DType::kF32, {2, 3}, {3, -1, 4, 1, 5, -9});

struct CumulativeCase {
  const char* op;
  NamedAttrs attrs;
  Row expected;
};

TEST(ReferenceCumulative, Table) {
  const double inf = INFINITY;
  const std::vector<CumulativeCase> cases = {
      {"cumsum", {{"axis", 1}}, {3, 2, 6, 1, 6, -3}},
      {"cumsum", {{"axis", 0}}, {3, -1, 4, 4, 4, -5}},
      {"cumsum", {{"axis", 1}, {"exclusive", true}}, {0, 3, 2, 0, 1, 6}},
      {"cumsum", {{"axis", 1}, {"reverse", true}}, {6, 3, 4, -3, -4, -9}},
      {"cumsum", {{"axis", -1}, {"exclusive", true}, {"reverse", true}}, {3, 4, 0, -4, -9, 0}},
      {"cumprod", {{"axis", 1}}, {3, -3, -12, 1, 5, -45}},
      {"cumprod", {{"axis", 1}, {"exclusive", true}}, {1, 3, -3, 1, 1, 5}},
      {"cumprod", {{"axis", 0}, {"reverse", true}}, {3, -5, -36, 1, 5, -9}},
      {"cummin", {{"axis", 1}}, {3, -1, -1, 1, 1, -9}},
      {"cummin", {{"axis", 1}, {"exclusive", true}}, {inf, 3, -1, inf, 1, 1}},
      {"cummax", {{"axis", 1}}, {3, 3, 4, 1, 5, 5}},
      {"cummax", {{"axis", 1}, {"exclusive", true}, {"reverse", true}}, {4, 4, -inf, 5, -9, -inf}},
  };
  for (const CumulativeCase& test : cases)
    EXPECT_TRUE(same(run_reference(test.op, {kTerms}, test.attrs),
                     TestTensor(DType::kF32, {2, 3}, test.expected)))
        << test.op;
}

TEST(ReferenceCumulative, AxisFromInput) {
  const TestTensor axis = TestTensor::of<int32_t>({}, {1});
  EXPECT_EQ(run_reference("cumsum", {kTerms, axis}).values(), (Row{3, 2, 6, 1, 6, -3}));
  EXPECT_EQ(error_of([] {
              run_reference("cumsum", {kTerms, TestTensor::of<int64_t>({}, {2})});
            }),
            "[cumsum] axis 2 is out of range for rank 2");
}

TEST(ReferenceCumulative, IntegersWrapAndStartAtTheirLimits) {
  const TestTensor x = TestTensor::of<int8_t>({3}, {100, 100, -5});
  EXPECT_EQ(run_reference("cumsum", {x}).values(), (Row{100, -56, -61}));
  EXPECT_EQ(run_reference("cummax", {x}, {{"exclusive", true}}).values(), (Row{-128, 100, 100}));
  EXPECT_EQ(run_reference("cummin", {x}, {{"exclusive", true}}).values(), (Row{127, 100, 100}));
}

TEST(ReferenceCumulative, NanStays) {
  const TestTensor x(DType::kF32, {3}, {1, NAN, 0});
  for (const char* op : {"cummin", "cummax", "cumsum", "cumprod"}) {
    const Row y = run_reference(op, {x}).values();
    EXPECT_EQ(y[0], 1) << op;
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2])) << op;
  }
}

TEST(ReferenceCumulative, ExtremaWithTheirPlaces) {  // from PyTorch
  const TestTensor x = f32s({2, 1, 2, 3, 3, 1, kNan, 4, kNan});
  const auto high = run_reference_all("cummax_with_indices", {x});
  EXPECT_TRUE(same(high[0], f32s({2, 2, 2, 3, 3, 3, kNan, kNan, kNan})));
  EXPECT_EQ(high[1].values(), (Row{0, 0, 2, 3, 4, 4, 6, 6, 8}));
  const auto low = run_reference_all("cummin_with_indices", {x});
  EXPECT_TRUE(same(low[0], f32s({2, 1, 1, 1, 1, 1, kNan, kNan, kNan})));
  EXPECT_EQ(low[1].values(), (Row{0, 1, 1, 1, 1, 5, 6, 6, 8}));
}

TEST(ReferenceCumulative, LogCumsumExp) {  // from PyTorch
  EXPECT_TRUE(same(run_reference("log_cumsum_exp", {f32s({1000, 1001, -kInf, 2})}),
                   f32s({1000, 1001.31323, 1001.31323, 1001.31323}), 1e-6));
  EXPECT_TRUE(same(run_reference("log_cumsum_exp", {f32s({-kInf, -kInf, 1, kNan, 2})}),
                   f32s({-kInf, -kInf, 1, kNan, kNan})));
}

}  // namespace
}  // namespace anymps::testing
