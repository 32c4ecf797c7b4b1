// SPDX-License-Identifier: Apache-2.0
// Expected numbers of the linear modes are those of ONNX Runtime's Resize.
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

struct LinearCase {
  const char* coordinate;
  std::vector<double> expected;
};

class ReferenceResizeLinear : public ::testing::TestWithParam<LinearCase> {};

TEST_P(ReferenceResizeLinear, DownAndUpAtOnce) {
  std::vector<double> ramp(16);
  for (size_t i = 0; i < 16; ++i) ramp[i] = static_cast<double>(i + 1);
  const TestTensor x(DType::kF32, {1, 1, 4, 4}, ramp);
  EXPECT_TRUE(same(run_reference("resize", {x},
                                 {{"scales", Floats{1, 1, 0.6f, 1.5f}},
                                  {"mode", "linear"},
                                  {"coordinate", GetParam().coordinate}}),
                   TestTensor(DType::kF32, {1, 1, 2, 6}, GetParam().expected), 1e-6));
}

INSTANTIATE_TEST_SUITE_P(
    Coordinates, ReferenceResizeLinear,
    ::testing::Values(LinearCase{"half_pixel",
                                 {2.3333333, 2.8333333, 3.5, 4.1666666, 4.8333333, 5.3333333, 9,
                                  9.5, 10.166667, 10.833334, 11.5, 12}},
                      LinearCase{"pytorch_half_pixel",
                                 {2.3333333, 2.8333333, 3.5, 4.1666666, 4.8333333, 5.3333333, 9,
                                  9.5, 10.166667, 10.833334, 11.5, 12}},
                      LinearCase{"align_corners",
                                 {1, 1.6, 2.2, 2.8, 3.4, 4, 13, 13.6, 14.2, 14.8, 15.4, 16}},
                      LinearCase{"asymmetric",
                                 {1, 1.6666667, 2.3333335, 3, 3.6666667, 4, 7.6666665, 8.333333, 9,
                                  9.666666, 10.333334, 10.666667}},
                      LinearCase{"half_pixel_symmetric",
                                 {3.6666667, 4.166667, 4.8333335, 5.5, 6.166667, 6.666667,
                                  10.333333, 10.833333, 11.5, 12.166667, 12.833333, 13.333333}}),
    [](const auto& info) { return std::string(info.param.coordinate); });

TEST(ReferenceResize, NearestRounding) {
  const TestTensor x(DType::kI32, {5}, {0, 1, 2, 3, 4});
  const auto run = [&](const char* coordinate, const char* nearest) {
    return run_reference("resize", {x},
                         {{"sizes", Ints{8}}, {"coordinate", coordinate}, {"nearest", nearest}})
        .values();
  };
  using Values = std::vector<double>;
  EXPECT_EQ(run("half_pixel", "round_prefer_floor"), (Values{0, 0, 1, 2, 2, 3, 4, 4}));
  EXPECT_EQ(run("half_pixel", "floor"), (Values{0, 0, 1, 1, 2, 2, 3, 4}));
  EXPECT_EQ(run("half_pixel", "ceil"), (Values{0, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(run("align_corners", "round_prefer_ceil"), (Values{0, 1, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(run("asymmetric", "round_prefer_floor"), (Values{0, 1, 1, 2, 2, 3, 4, 4}));
  EXPECT_EQ(run("asymmetric", "round_prefer_ceil"), (Values{0, 1, 1, 2, 3, 3, 4, 4}));
  EXPECT_EQ(run("asymmetric", "ceil"), (Values{0, 1, 2, 2, 3, 4, 4, 4}));
}

TEST(ReferenceResize, LinearOverEveryAxis) {
  // A function that is linear in each coordinate is reproduced inside the edges.
  TestTensor x(DType::kF64, {3, 4, 5});
  for_each_index(x.shape(), [&](const Shape& at) {
    x.put(at, static_cast<double>(at[0] + 10 * at[1] + 100 * at[2]));
  });
  const TestTensor y = run_reference(
      "resize", {x.scrambled()},
      {{"sizes", Ints{5, 7, 9}}, {"mode", "linear"}, {"coordinate", "align_corners"}});
  for_each_index(y.shape(), [&](const Shape& at) {
    EXPECT_NEAR(y.get(at).real(),
                static_cast<double>(at[0]) / 2 + 10.0 * static_cast<double>(at[1]) / 2 +
                    100.0 * static_cast<double>(at[2]) / 2,
                1e-9);
  });
}

TEST(ReferenceResize, ToOneElement) {
  const TestTensor x(DType::kF32, {4}, {1, 2, 3, 4});
  const auto run = [&](const char* coordinate) {
    return run_reference("resize", {x},
                         {{"sizes", Ints{1}}, {"mode", "linear"}, {"coordinate", coordinate}})
        .values()
        .at(0);
  };
  EXPECT_EQ(run("half_pixel"), 2.5);
  EXPECT_EQ(run("pytorch_half_pixel"), 1);
  EXPECT_EQ(run("align_corners"), 1);
}

TEST(ReferenceResize, SizesFromAnInputAndIntegers) {
  const TestTensor x(DType::kU8, {2}, {10, 21}), sizes(DType::kI64, {1}, {4});
  EXPECT_TRUE(same(run_reference("resize", {x, sizes}, {{"mode", "linear"}}),
                   TestTensor(DType::kU8, {4}, {10, 12, 18, 21})));
  const TestTensor flags(DType::kBool, {2}, {0, 1});
  EXPECT_TRUE(
      same(run_reference("resize", {flags, sizes}), TestTensor(DType::kBool, {4}, {0, 0, 1, 1})));
}

}  // namespace
}  // namespace anymps
