// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::run_reference_all;
using testing::same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

const TestTensor& one_to_twelve() {
  static const TestTensor tensor(DType::kF32, {1, 1, 3, 4},
                                 {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  return tensor;
}

TEST(ReferencePool, MaxAndItsIndices) {
  const auto out = run_reference_all(
      "max_pool", {one_to_twelve()},
      {{"kernel", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}, {"strides", Ints{2, 1}}});
  EXPECT_TRUE(same(out[0], TestTensor(DType::kF32, {1, 1, 2, 3}, {2, 3, 4, 10, 11, 12})));
  EXPECT_TRUE(same(out[1], TestTensor(DType::kI64, {1, 1, 2, 3}, {1, 2, 3, 9, 10, 11})));
}

TEST(ReferencePool, IndicesCountOverTheWholeTensor) {
  const TestTensor x(DType::kI32, {2, 2, 2}, {1, 2, 4, 3, 5, 6, 8, 7});
  const auto out = run_reference_all("max_pool", {x}, {{"kernel", Ints{2}}});
  EXPECT_TRUE(same(out[0], TestTensor(DType::kI32, {2, 2, 1}, {2, 4, 6, 8})));
  EXPECT_TRUE(same(out[1], TestTensor(DType::kI64, {2, 2, 1}, {1, 2, 5, 6})));
  const auto last =
      run_reference_all("max_pool", {x}, {{"kernel", Ints{2}}, {"layout", "channels_last"}});
  EXPECT_TRUE(same(last[0], TestTensor(DType::kI32, {2, 1, 2}, {4, 3, 8, 7})));
  EXPECT_TRUE(same(last[1], TestTensor(DType::kI64, {2, 1, 2}, {2, 3, 6, 7})));
}

TEST(ReferencePool, MaxOfNaNTiesAndPadding) {
  const double nan = std::nan("");
  const TestTensor x(DType::kF32, {1, 1, 6}, {3, 3, -5, nan, 1, -2});
  const auto out = run_reference_all(
      "max_pool", {x}, {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{2, 2}}});
  const double low = -std::numeric_limits<double>::infinity();
  EXPECT_TRUE(same(out[0], TestTensor(DType::kF32, {1, 1, 5}, {low, 3, nan, 1, low})));
  EXPECT_TRUE(same(out[1], TestTensor(DType::kI64, {1, 1, 5}, {-1, 0, 3, 4, -1})));
}

// The extent is ceil((2 - 3) / stride) + 1: 1 for a stride of 2, nothing for one of 1.
TEST(ReferencePool, RoundedUpAWindowMayBeLargerThanTheInput) {
  const TestTensor x(DType::kF32, {1, 1, 2, 2}, {1, 2, 3, 6});
  const NamedAttrs attrs{{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", true}};
  const auto max = run_reference_all("max_pool", {x}, attrs);
  EXPECT_TRUE(same(max[0], TestTensor(DType::kF32, {1, 1, 1, 1}, {6})));
  EXPECT_TRUE(same(max[1], TestTensor(DType::kI64, {1, 1, 1, 1}, {3})));
  EXPECT_TRUE(
      same(run_reference("avg_pool", {x}, attrs), TestTensor(DType::kF32, {1, 1, 1, 1}, {3})));
  // Padding counts, what sticks out of it does not: 12 / (3 * 2).
  NamedAttrs counted{{"kernel", Ints{4, 3}},
                     {"strides", Ints{2, 2}},
                     {"pads", Ints{1, 0, 0, 0}},
                     {"ceil_mode", true},
                     {"count_include_pad", true}};
  EXPECT_TRUE(
      same(run_reference("avg_pool", {x}, counted), TestTensor(DType::kF32, {1, 1, 1, 1}, {2})));
  const NamedAttrs dense{{"kernel", Ints{3, 3}}, {"ceil_mode", true}};
  EXPECT_NE(testing::error_of([&] { run_reference("max_pool", {x}, dense); }).find("does not fit"),
            std::string::npos);
}

TEST(ReferencePool, DilatedMax) {
  EXPECT_TRUE(same(run_reference("max_pool", {one_to_twelve()},
                                 {{"kernel", Ints{2, 2}}, {"dilations", Ints{2, 3}}}),
                   TestTensor(DType::kF32, {1, 1, 1, 1}, {12})));
}

TEST(ReferencePool, AverageCountsWhatItIsToldTo) {
  const TestTensor x(DType::kF32, {1, 1, 3}, {2, 4, 6});
  const NamedAttrs padded{{"kernel", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{1, 0}}};
  EXPECT_TRUE(
      same(run_reference("avg_pool", {x}, padded), TestTensor(DType::kF32, {1, 1, 2}, {2, 5})));
  NamedAttrs counted = padded;
  counted.emplace_back("count_include_pad", true);
  EXPECT_TRUE(
      same(run_reference("avg_pool", {x}, counted), TestTensor(DType::kF32, {1, 1, 2}, {1, 5})));
}

TEST(ReferencePool, AverageNeverCountsWhatCeilModeAdds) {
  const TestTensor x(DType::kF32, {1, 1, 5}, {1, 2, 3, 4, 5});
  for (const bool count : {false, true})
    EXPECT_TRUE(same(run_reference("avg_pool", {x},
                                   {{"kernel", Ints{2}},
                                    {"strides", Ints{2}},
                                    {"ceil_mode", true},
                                    {"count_include_pad", count}}),
                     TestTensor(DType::kF32, {1, 1, 3}, {1.5, 3.5, 5})));
}

TEST(ReferencePool, AverageOfNothingIsZero) {
  const TestTensor x(DType::kF32, {1, 1, 2}, {1, 3});
  EXPECT_TRUE(same(run_reference("avg_pool", {x},
                                 {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{2, 0}}}),
                   TestTensor(DType::kF32, {1, 1, 2}, {0, 2})));
}

TEST(ReferencePool, Norms) {
  const TestTensor x(DType::kF32, {1, 1, 3}, {3, -4, 0});
  EXPECT_TRUE(same(run_reference("lp_pool", {x}, {{"kernel", Ints{2}}}),
                   TestTensor(DType::kF32, {1, 1, 2}, {5, 4}), 1e-6));
  EXPECT_TRUE(same(run_reference("lp_pool", {x}, {{"kernel", Ints{2}}, {"p", 1}}),
                   TestTensor(DType::kF32, {1, 1, 2}, {7, 4}), 1e-6));
  EXPECT_TRUE(same(run_reference("lp_pool", {x}, {{"kernel", Ints{2}}, {"p", 3}}),
                   TestTensor(DType::kF32, {1, 1, 2}, {std::cbrt(91.0), 4}), 1e-6));
}

TEST(ReferencePool, ReadsStridedInputs) {
  const TestTensor x = TestTensor(DType::kF32, {2, 3, 5, 4}).fill(1);
  for (const char* op : {"max_pool", "avg_pool", "lp_pool"}) {
    const NamedAttrs attrs{{"kernel", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}};
    EXPECT_TRUE(same(run_reference(op, {x.scrambled()}, attrs), run_reference(op, {x}, attrs)))
        << op;
  }
}

TEST(ReferencePool, PlacesInOtherTerms) {
  const auto run = [&](const char* indices) {
    return run_reference_all(
               "max_pool",
               {TestTensor(DType::kF32, {1, 2, 2, 4},
                           {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1})},
               {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"indices", indices}})[1]
        .values();
  };
  using Values = std::vector<double>;
  EXPECT_EQ(run("tensor"), (Values{5, 7, 8, 10}));
  EXPECT_EQ(run("column_major"), (Values{3, 7, 8, 12}));
  EXPECT_EQ(run("global_1d"), (Values{1, 3, 0, 2}));
  EXPECT_EQ(run("global_2d"), (Values{5, 7, 0, 2}));
  EXPECT_EQ(run("local_2d"), (Values{3, 3, 0, 0}));
  EXPECT_EQ(run("local_1d"), (Values{1, 1, 0, 0}));
}

TEST(ReferencePool, UnpoolTakesElementsBack) {
  const TestTensor x = TestTensor(DType::kF32, {2, 2, 5, 6}).fill(3, 1, 2);
  for (const char* indices : {"tensor", "column_major", "global_2d", "global_3d", "local_2d"}) {
    const NamedAttrs attrs{{"kernel", Ints{2, 3}}, {"strides", Ints{2, 2}}, {"indices", indices}};
    const auto pooled = run_reference_all("max_pool", {x}, attrs);
    NamedAttrs back = attrs;
    back.emplace_back("shape", Ints{2, 2, 5, 6});
    const TestTensor y = run_reference("max_unpool", {pooled[0], pooled[1]}, back);
    double sum = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      const double value = y.get(at).real();
      EXPECT_TRUE(value == 0 || value == x.get(at).real()) << indices << to_string(at);
      sum += value;
    });
    EXPECT_GT(sum, 0) << indices;
  }
}

TEST(ReferencePool, Gradients) {
  const TestTensor x(DType::kF32, {1, 1, 4}, {3, 4, 0, 1}), g(DType::kF32, {1, 1, 3}, {1, 10, 100});
  const auto run = [&](const char* op, NamedAttrs attrs = {}) {
    attrs.emplace_back("kernel", Ints{2});
    return run_reference(op, {g, x}, attrs);
  };
  EXPECT_TRUE(same(run("max_pool_gradient"), TestTensor(DType::kF32, {1, 1, 4}, {0, 11, 0, 100})));
  EXPECT_TRUE(
      same(run("avg_pool_gradient"), TestTensor(DType::kF32, {1, 1, 4}, {0.5, 5.5, 55, 50})));
  EXPECT_TRUE(
      same(run("lp_pool_gradient"), TestTensor(DType::kF32, {1, 1, 4}, {0.6, 10.8, 0, 100}), 1e-6));
}

}  // namespace
}  // namespace anymps
