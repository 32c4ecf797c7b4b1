// SPDX-License-Identifier: Apache-2.0
// Expected numbers of the linear modes are those of ONNX Runtime's Resize, except for align_corners
// and the rest those of ONNX's reference evaluator: the standard divides by the extent before
// rounding.
#include <algorithm>
#include <numeric>

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
                                 {1, 1.6, 2.2, 2.8, 3.4, 4, 9.5714283, 10.171428, 10.771428,
                                  11.371428, 11.971428, 12.571428}},
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

// Where a place is that of an element, or half way between two: 9 of 18 is 7 of 14, not a rounding
// error before it.
TEST(ReferenceResize, NearestIsExactWhereSizesAreGiven) {
  const auto floor_of = [](int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  for (int64_t n = 1; n <= 40; ++n) {
    std::vector<double> ramp(static_cast<size_t>(n));
    std::iota(ramp.begin(), ramp.end(), 0);
    const TestTensor x(DType::kI32, {n}, ramp);
    for (int64_t m = 1; m <= 60; ++m) {
      const auto expect = [&](const char* coordinate, const char* nearest, auto&& place) {
        std::vector<double> expected;
        for (int64_t at = 0; at < m; ++at)
          expected.push_back(static_cast<double>(std::clamp<int64_t>(place(at), 0, n - 1)));
        const NamedAttrs attrs = {
            {"sizes", Ints{m}}, {"coordinate", coordinate}, {"nearest", nearest}};
        EXPECT_EQ(run_reference("resize", {x}, attrs).values(), expected)
            << coordinate << " " << nearest << " " << n << " to " << m;
      };
      expect("asymmetric", "floor", [&](int64_t at) { return at * n / m; });
      expect("asymmetric", "ceil", [&](int64_t at) { return -floor_of(-at * n, m); });
      expect("half_pixel", "floor",
             [&](int64_t at) { return floor_of((2 * at + 1) * n - m, 2 * m); });
      expect("half_pixel", "round_prefer_ceil",
             [&](int64_t at) { return floor_of((2 * at + 1) * n, 2 * m); });
      expect("tf_half_pixel", "floor", [&](int64_t at) { return (2 * at + 1) * n / (2 * m); });
    }
  }
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

TestTensor ramp(int64_t rows, int64_t columns, int64_t width) {
  TestTensor tensor(DType::kF32, {1, 1, rows, columns});
  for_each_index(tensor.shape(), [&](const Shape& at) {
    tensor.put(at, static_cast<double>(1 + at[2] * width + at[3]));
  });
  return tensor;
}

TEST(ReferenceResize, Cubic) {
  TestTensor x = ramp(2, 3, 4);
  EXPECT_TRUE(same(run_reference("resize", {x}, {{"sizes", Ints{1, 1, 3, 4}}, {"mode", "cubic"}}),
                   TestTensor(DType::kF32, {1, 1, 3, 4},
                              {0.58100069, 1.1825634, 2.1229935, 2.7245562, 2.9282227, 3.5297852,
                               4.4702148, 5.0717773, 5.2754469, 5.8770099, 6.81744, 7.4190025}),
                   5e-6));
  EXPECT_TRUE(same(run_reference("resize", {ramp(4, 4, 4)},
                                 {{"sizes", Ints{1, 1, 3, 3}},
                                  {"mode", "cubic"},
                                  {"cubic_coeff_a", -0.5},
                                  {"exclude_outside", true}}),
                   TestTensor(DType::kF32, {1, 1, 3, 3},
                              {1.5142215, 2.9113772, 4.3085332, 7.1028442, 8.5, 9.8971558,
                               12.691467, 14.088623, 15.485779}),
                   5e-6));
}

TEST(ReferenceResize, Antialias) {
  EXPECT_TRUE(same(
      run_reference("resize", {ramp(4, 4, 4)},
                    {{"sizes", Ints{1, 1, 2, 3}}, {"mode", "linear"}, {"antialias", true}}),
      TestTensor(DType::kF32, {1, 1, 2, 3}, {3.7727273, 5, 6.2272725, 10.772727, 12, 13.227273}),
      5e-6));
  EXPECT_TRUE(same(
      run_reference("resize", {ramp(4, 4, 4)},
                    {{"scales", Floats{1, 1, 0.6f, 0.6f}}, {"mode", "cubic"}, {"antialias", true}}),
      TestTensor(DType::kF32, {1, 1, 2, 2}, {2.5180695, 4.2858858, 9.5893354, 11.357152}), 5e-6));
}

TEST(ReferenceResize, CropWithExtrapolation) {
  EXPECT_TRUE(same(run_reference("resize", {ramp(4, 4, 4)},
                                 {{"sizes", Ints{3, 3}},
                                  {"axes", Ints{2, 3}},
                                  {"roi", Floats{0.4f, 0.6f, 1.2f, 1.7f}},
                                  {"mode", "linear"},
                                  {"coordinate", "tf_crop_and_resize"},
                                  {"extrapolation_value", 10.0}}),
                   TestTensor(DType::kF32, {1, 1, 3, 3}, {7.6, 10, 10, 12.4, 10, 10, 10, 10, 10}),
                   1e-6));
}

TEST(ReferenceResize, KeepsTheAspectRatio) {
  EXPECT_TRUE(
      same(run_reference("resize", {ramp(2, 4, 4)},
                         {{"sizes", Ints{7, 8}}, {"axes", Ints{2, 3}}, {"aspect", "not_larger"}}),
           TestTensor(DType::kF32, {1, 1, 4, 8}, {1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4, 5,
                                                  5, 6, 6, 7, 7, 8, 8, 5, 5, 6, 6, 7, 7, 8, 8})));
}

TEST(ReferenceResize, ScalesFromAnInput) {
  const TestTensor x(DType::kF32, {1, 3}, {1, 2, 3}), scales(DType::kF32, {1}, {2});
  EXPECT_TRUE(same(run_reference("resize", {x, std::nullopt, scales}, {{"axes", Ints{1}}}),
                   TestTensor(DType::kF32, {1, 6}, {1, 1, 2, 2, 3, 3})));
}

TEST(ReferenceResize, ScaleAndOffset) {
  // Element p lies at (p - 1) / 2: 1 and 3 are those of x.
  EXPECT_TRUE(same(run_reference("resize", {TestTensor(DType::kF32, {2}, {10, 20})},
                                 {{"sizes", Ints{5}},
                                  {"scales", Floats{2}},
                                  {"offsets", Floats{1}},
                                  {"mode", "linear"},
                                  {"coordinate", "scale_offset"}}),
                   TestTensor(DType::kF32, {5}, {10, 10, 15, 20, 20})));
}

// The gradient is the transpose: <resize(x), g> = <x, gradient(g)>.
TEST(ReferenceResize, GradientIsTheTranspose) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* coordinate : {"half_pixel", "align_corners", "asymmetric"}) {
      const TestTensor x = TestTensor(DType::kF64, {3, 4}).fill(1),
                       g = TestTensor(DType::kF64, {5, 3}).fill(2);
      const NamedAttrs attrs{{"mode", mode}, {"coordinate", coordinate}};
      NamedAttrs forward = attrs;
      forward.emplace_back("sizes", Ints{5, 3});
      const auto y = run_reference("resize", {x}, forward).values(), gs = g.values(),
                 xs = x.values(), d = run_reference("resize_gradient", {g, x}, attrs).values();
      double left = 0, right = 0;
      for (size_t i = 0; i < gs.size(); ++i) left += y[i] * gs[i];
      for (size_t i = 0; i < xs.size(); ++i) right += d[i] * xs[i];
      EXPECT_NEAR(left, right, 1e-12) << mode << " " << coordinate;
    }
}

}  // namespace
}  // namespace anymps
