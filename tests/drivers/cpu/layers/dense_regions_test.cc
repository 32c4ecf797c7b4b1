// SPDX-License-Identifier: Apache-2.0
// Kernels of channels-last regions, against the reference: convolutions with few output channels,
// depthwise ones in three dimensions, those whose image comes as planes, rows that overlap as rows
// of a product, and norms whose channels lie side by side.
#include <gtest/gtest.h>

#include <cmath>

#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/layers/depthwise_simd.h"
#include "drivers/cpu/linear/gemm_simd.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::KernelCase;
using testing::random_f32;
using testing::run_cpu_kernel;
using testing::spread;
using testing::TestInputs;
using Ints = std::vector<int64_t>;

constexpr const char* kActivations[] = {"none", "relu",       "clamp", "hard_sigmoid",
                                        "silu", "leaky_relu", "tanh"};

NamedAttrs last(NamedAttrs attrs, size_t activation = 0) {
  attrs.push_back({"activation", kActivations[activation % std::size(kActivations)]});
  attrs.push_back({"alpha", 0.2});
  attrs.push_back({"beta", 0.7});
  attrs.push_back({"layout", "channels_last"});
  return attrs;
}

struct WindowOf {
  Ints kernel, strides, dilations, pads;
  Shape image;  // behind the batch, without channels
};

const WindowOf kWindows[] = {
    {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {7, 19}},
    {{9, 9}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {11, 25}},
    {{5, 3}, {2, 3}, {1, 1}, {2, 0, 1, 2}, {8, 29}},
    {{3, 4}, {1, 1}, {2, 3}, {2, 4, 2, 5}, {6, 21}},
    {{1, 7}, {1, 1}, {1, 1}, {0, 9, 0, 9}, {2, 5}},
    {{7}, {1}, {1}, {3, 3}, {40}},
    {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {4, 5, 18}},
    {{2, 3, 2}, {2, 1, 2}, {1, 2, 1}, {1, 2, 0, 0, 1, 1}, {5, 7, 9}},
};

Shape image_of(const WindowOf& window, int64_t channels) {
  Shape shape = {2};
  for (const int64_t extent : window.image) shape.push_back(extent);
  shape.push_back(channels);
  return shape;
}

Shape weights_of(const WindowOf& window, int64_t outputs, int64_t inputs) {
  Shape shape = {outputs, inputs};
  for (const int64_t extent : window.kernel) shape.push_back(extent);
  return shape;
}

NamedAttrs attrs_of(const WindowOf& window) {
  return {{"strides", window.strides}, {"dilations", window.dilations}, {"pads", window.pads}};
}

TEST(NarrowConvolution, AsTheReference) {
  if (!cpu::gemm_is_here()) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  size_t number = 0;
  for (const WindowOf& window : kWindows)
    for (const int64_t inputs : {32, 37, 64})
      for (int64_t outputs = 1; outputs <= 8; ++outputs) {
        SCOPED_TRACE(fmt::format("case {}: {} -> {}", number, inputs, outputs));
        TestInputs tensors{random_f32(image_of(window, inputs), 1),
                           random_f32(weights_of(window, outputs, inputs), 2)};
        if (number % 3) tensors.push_back(random_f32({outputs}, 3));
        // What f32 leaves of sums that cancel, of so many products.
        const auto products = static_cast<double>(element_count(weights_of(window, 1, inputs)));
        expect_same({"conv", "narrow", tensors, last(attrs_of(window), number++), 1, {1}},
                    2e-6 * std::sqrt(products));
      }
}

TEST(NarrowConvolution, WithAResidual) {
  if (!cpu::gemm_is_here()) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  for (size_t activation = 0; activation < std::size(kActivations); ++activation)
    expect_same({"conv",
                 "narrow",
                 {random_f32({1, 6, 17, 40}, 1), random_f32({3, 40, 3, 3}, 2), random_f32({3}, 3),
                  random_f32({1, 4, 15, 3}, 4)},
                 last({}, activation),
                 1,
                 {1}},
                1e-4);
}

TEST(DepthwiseRows, ThreeDimensions) {
  if (!cpu::depthwise_is_here()) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  size_t number = 0;
  for (const WindowOf& window : kWindows)
    for (const int64_t channels : {3, 16, 54}) {
      // In fewer dimensions those activations alone that `depthwise` leaves.
      const size_t activation =
          window.kernel.size() == 3 ? number % std::size(kActivations) : 4 + number % 3;
      NamedAttrs attrs = attrs_of(window);
      attrs.push_back({"groups", channels});
      TestInputs tensors{random_f32(image_of(window, channels), 1),
                         random_f32(weights_of(window, channels, 1), 2)};
      if (number % 3) tensors.push_back(random_f32({channels}, 3));
      SCOPED_TRACE(fmt::format("case {}: {} channels", number, channels));
      ++number;
      expect_same({"conv", "depthwise_rows", tensors, last(attrs, activation), 1, {1}}, 5e-5);
    }
}

TEST(DepthwiseRows, ThreeDimensionsWithAResidual) {
  if (!cpu::depthwise_is_here()) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  expect_same({"conv",
               "depthwise_rows",
               {random_f32({1, 4, 5, 9, 20}, 1), random_f32({20, 1, 3, 3, 3}, 2),
                random_f32({20}, 3), random_f32({1, 2, 3, 7, 20}, 4)},
               last({{"groups", int64_t{20}}}, 1),
               1,
               {1}},
              5e-5);
}

TEST(DenseConvolution, ImagesAndResidualsThatComeAsPlanes) {
  if (!cpu::gemm_is_here()) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  struct Case {
    Shape image, weights;
    int64_t groups;
  };
  for (const Case& c :
       {Case{{1, 20, 20, 64}, {64, 64, 3, 3}, 1}, Case{{2, 9, 8, 24}, {40, 24, 1, 1}, 1},
        Case{{1, 9, 18, 48}, {3, 48, 3, 3}, 1}, Case{{2, 30, 40}, {50, 40, 1}, 1}})
    for (const bool residual : {false, true}) {
      Shape y = c.image;
      y.back() = c.weights[0];
      const int64_t pad = c.weights.back() / 2;
      const Ints pads(2 * (c.image.size() - 2), pad);
      TestInputs inputs{spread(random_f32(c.image, 1)), random_f32(c.weights, 2),
                        random_f32({c.weights[0]}, 3)};
      if (residual) inputs.push_back(spread(random_f32(y, 4)));
      expect_same(
          {"conv", "dense", inputs, last({{"pads", pads}, {"groups", c.groups}}, 1), 1, {1}}, 2e-4);
    }
}

TEST(DenseConvolution, LeavesDenseImagesToOthers) {
  KernelCase test{"conv",   "dense", {random_f32({1, 9, 9, 32}, 1), random_f32({32, 32, 1, 1}, 2)},
                  last({}), 1,       {1}};
  EXPECT_FALSE(run_cpu_kernel(test).kernel);
}

TEST(PointwiseConvolution, RowsThatOverlap) {
  if (!cpu::gemm_is_here()) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  for (const int64_t batch : {1, 3})
    for (const int64_t stride : {1, 2})
      expect_same(
          {"conv",
           "gemm",
           {random_f32({batch, 31, 50}, 1), random_f32({4, 50, 70}, 2), random_f32({70}, 3)},
           last({{"weights_layout", "*IO"}, {"strides", Ints{stride}}}, 1),
           1,
           {1}},
          1e-4);
}

TEST(ChannelNorm, ChannelsSideBySide) {
  for (const int64_t channels : {1, 2, 3, 5, 8, 12, 16, 17, 24, 31, 33, 64, 70, 129, 300})
    for (const int64_t pixels : {1, 2, 7, 16, 33, 500}) {
      SCOPED_TRACE(fmt::format("{} channels of {} pixels", channels, pixels));
      const TestInputs inputs{random_f32({2, pixels, channels}, 1), random_f32({channels}, 2),
                              random_f32({channels}, 3)};
      expect_same({"instance_norm", "simd", inputs, {{"axis", int64_t{2}}}}, 5e-5);
      for (const int64_t groups : {int64_t{1}, channels % 3 == 0 ? channels / 3 : channels})
        expect_same({"group_norm", "simd", inputs, {{"axis", int64_t{-1}}, {"groups", groups}}},
                    5e-5);
    }
}

// The variance of numbers far from zero must not cancel.
TEST(ChannelNorm, LargeMeans) {
  TestInputs inputs{random_f32({1, 40, 40, 24}, 1, 999, 1001)};
  expect_same({"instance_norm", "simd", inputs, {{"axis", int64_t{3}}}}, 1e-3);
  expect_same({"group_norm", "simd", inputs, {{"axis", int64_t{3}}, {"groups", int64_t{4}}}}, 1e-3);
}

TEST(ChannelNorm, TheSameBitsForAnyNumberOfThreads) {
  for (const char* op : {"instance_norm", "group_norm"}) {
    NamedAttrs attrs{{"axis", int64_t{3}}};
    if (std::string_view(op) == "group_norm") attrs.push_back({"groups", int64_t{6}});
    KernelCase test{op, "simd", {random_f32({2, 60, 61, 24}, 1)}, attrs};
    test.threads = 1;
    const auto one = run_cpu_kernel(test);
    test.threads = 2;
    const auto two = run_cpu_kernel(test);
    ASSERT_TRUE(one.kernel && two.kernel);
    EXPECT_TRUE(same(one.outputs[0], two.outputs[0], 0));
  }
}

}  // namespace
}  // namespace anymps
