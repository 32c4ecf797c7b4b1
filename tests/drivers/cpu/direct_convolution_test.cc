// SPDX-License-Identifier: Apache-2.0
// Convolutions that are made row by row without oneDNN, against the reference: every border that a
// window can have, channels that fill vectors and that do not, and phases of transposed ones.
#include <gtest/gtest.h>

#include "against_reference.h"
#include "drivers/cpu/layers/direct/tiles_simd.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::KernelCase;
using testing::random_f32;
using testing::TestInputs;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

class DirectConvolutions : public ::testing::Test {
  void SetUp() override {
    if (cpu::direct::tile_shape().lanes == 0) GTEST_SKIP() << "neither AVX2 nor AVX-512";
  }
};

constexpr const char* kOfTiles[] = {"none", "relu", "clamp", "hard_swish", "hard_sigmoid"};

NamedAttrs with_tile_activation(NamedAttrs attrs, size_t i) {
  attrs.push_back({"activation", kOfTiles[i % std::size(kOfTiles)]});
  attrs.push_back({"alpha", 0.2});
  attrs.push_back({"beta", 0.7});
  attrs.push_back({"layout", "channels_last"});
  return attrs;
}

Shape with_axes_of(Shape first, const Shape& second, std::optional<int64_t> last = std::nullopt) {
  for (const int64_t extent : second) first.push_back(extent);
  if (last) first.push_back(*last);
  return first;
}

struct WindowCase {
  Ints kernel, strides, pads, output_padding;
  Shape image;
};

TEST_F(DirectConvolutions, TransposedConvolutions) {
  const WindowCase windows[] = {
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}, {5, 9}},
      {{4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, {7, 20}},
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {6, 15}},
      {{3, 3}, {2, 1}, {1, 1, 1, 1}, {0, 0}, {5, 16}},
      {{5, 2}, {3, 4}, {2, 0, 1, 0}, {0, 3}, {4, 3}},
      {{2, 3}, {3, 5}, {0, 1, 1, 0}, {2, 0}, {3, 4}},
      {{1, 7}, {1, 3}, {0, 5, 0, 4}, {0, 1}, {1, 6}},
      {{16}, {8}, {4, 4}, {0}, {33}},
      {{4}, {2}, {1, 1}, {0}, {1}},
      {{11}, {5}, {3, 3}, {0}, {9}},
  };
  struct Channels {
    int64_t in, out, groups;
  };
  size_t number = 0;
  for (const WindowCase& window : windows)
    for (const Channels& c : {Channels{3, 1, 1}, Channels{5, 6, 1}, Channels{9, 40, 1},
                              Channels{4, 130, 1}, Channels{40, 1, 1}, Channels{21, 2, 1},
                              Channels{16, 1, 1}, Channels{6, 64, 2}, Channels{8, 72, 4}}) {
      SCOPED_TRACE(fmt::format("window {}, {} -> {} in {}", number, c.in, c.out, c.groups));
      TestInputs inputs{random_f32(with_axes_of({2}, window.image, c.in), 1),
                        random_f32(with_axes_of({c.in, c.out / c.groups},
                                                Shape(window.kernel.begin(), window.kernel.end())),
                                   2)};
      if (number % 3) inputs.push_back(random_f32({c.out}, 3));
      expect_same({"conv_transpose",
                   "direct",
                   inputs,
                   with_tile_activation({{"groups", c.groups},
                                         {"strides", window.strides},
                                         {"pads", window.pads},
                                         {"output_padding", window.output_padding}},
                                        number++),
                   1,
                   {1}},
                  5e-5);
    }
}

TEST_F(DirectConvolutions, TransposedConvolutionsThatFixTheirExtents) {
  for (const char* pad : {"same_upper", "same_lower"})
    expect_same({"conv_transpose",
                 "direct",
                 {random_f32({1, 3, 5, 7}, 1), random_f32({7, 20, 4, 3}, 2), random_f32({20}, 3)},
                 with_tile_activation({{"strides", Ints{2, 2}}, {"auto_pad", pad}}, 0),
                 1,
                 {1}},
                5e-5);
  expect_same({"conv_transpose",
               "direct",
               {random_f32({1, 3, 3, 7}, 1), random_f32({7, 20, 3, 3}, 2)},
               with_tile_activation({{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}}, 0),
               1,
               {1}},
              5e-5);
}

TEST_F(DirectConvolutions, ActivationsOfASecondPass) {
  for (const char* activation :
       {"leaky_relu", "elu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"})
    for (const int64_t filters : {1, 70}) {
      const NamedAttrs attrs{{"activation", activation},
                             {"alpha", 0.3},
                             {"layout", "channels_last"},
                             {"strides", Ints{2, 2}}};
      expect_same({"conv_transpose",
                   "direct",
                   {random_f32({2, 3, 9, 24}, 1), random_f32({24, filters, 2, 2}, 2),
                    random_f32({filters}, 3)},
                   attrs,
                   1,
                   {1}},
                  5e-5);
      expect_same({"conv",
                   "direct",
                   {random_f32({2, 5, 40, 3}, 1), random_f32({filters, 3, 2, 2}, 2)},
                   attrs,
                   1,
                   {1}},
                  5e-5);
    }
}

// Windows of phases with fewer taps, and of few columns, see no more of an image than theirs.
TEST_F(DirectConvolutions, InfinitiesStayInTheirWindows) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const int64_t kernel : {2, 3, 4})
    for (const int64_t filters : {1, 3, 20}) {
      TestTensor x = random_f32({1, 3, 20, 21}, 1);
      static_cast<float*>(x.ptr())[21 * 30 + 5] = inf;
      static_cast<float*>(x.ptr())[21 * 41] = -inf;
      expect_same({"conv_transpose",
                   "direct",
                   {x, random_f32({21, filters, kernel, kernel}, 2)},
                   with_tile_activation({{"strides", Ints{2, 2}}, {"pads", Ints{0, 1, 0, 0}}}, 0),
                   1,
                   {1}},
                  5e-5);
    }
  TestTensor x = random_f32({1, 5, 30, 3}, 1);
  static_cast<float*>(x.ptr())[170] = inf;
  expect_same({"conv",
               "direct",
               {x, random_f32({20, 3, 3, 3}, 2)},
               with_tile_activation({{"pads", Ints{1, 1, 1, 1}}}, 0),
               1,
               {1}},
              5e-5);
  x = random_f32({1, 5, 30, 12}, 1);
  static_cast<float*>(x.ptr())[170] = inf;
  expect_same({"conv",
               "grouped",
               {x, random_f32({12, 4, 3, 3}, 2)},
               with_tile_activation({{"groups", 3}, {"pads", Ints{1, 1, 1, 1}}}, 0),
               1,
               {1}},
              5e-5);
}

TEST_F(DirectConvolutions, ImagesOfFewChannels) {
  const WindowCase windows[] = {
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {9, 60}},
      {{7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, {8, 80}},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {1, 40}},
      {{5, 5}, {1, 1}, {0, 4, 3, 2}, {1, 1}, {7, 80}},
      {{3, 2}, {3, 1}, {2, 5, 1, 0}, {2, 3}, {6, 70}},
      {{4, 4}, {4, 4}, {0, 0, 0, 0}, {1, 1}, {8, 12}},
      {{10}, {5}, {0, 0}, {1}, {101}},
      {{3}, {1}, {4, 1}, {2}, {60}},
  };  // output_padding stands for the dilations
  size_t number = 0;
  for (const WindowCase& window : windows)
    for (const int64_t channels : {1, 2, 3, 4})
      for (const int64_t filters : {1, 16, 24, 70})
        for (const bool first : {false, true}) {
          SCOPED_TRACE(fmt::format("window {}, {} -> {}", number, channels, filters));
          TestTensor x = random_f32(with_axes_of({2}, window.image, channels), 1);
          if (first) {  // channels first in memory
            TensorDesc planes(DType::kF32, with_axes_of({2, channels}, window.image));
            Strides strides{planes.strides[0]};
            for (size_t i = 0; i < window.image.size(); ++i)
              strides.push_back(planes.strides[i + 2]);
            strides.push_back(planes.strides[1]);
            x = x.with_strides(strides);
          }
          TestInputs inputs{
              x,
              random_f32(with_axes_of({filters, channels},
                                      Shape(window.kernel.begin(), window.kernel.end())),
                         2),
              std::nullopt, std::nullopt};
          NamedAttrs attrs = with_tile_activation({{"strides", window.strides},
                                                   {"pads", window.pads},
                                                   {"dilations", window.output_padding}},
                                                  number);
          if (number % 2) inputs[2] = random_f32({filters}, 3);
          if (number % 3 == 0)
            inputs[3] = TestTensor(infer_outputs(get_op("conv"), Attrs(get_op("conv"), attrs),
                                                 inputs, 1)[0])
                            .fill(4, -1, 1);
          ++number;
          expect_same({"conv", "direct", inputs, attrs, 1, {1}}, 5e-5);
        }
}

TEST_F(DirectConvolutions, GroupsOfFewChannels) {
  const WindowCase windows[] = {
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {4, 23}},
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {5, 9}},
      {{5, 4}, {1, 3}, {0, 3, 5, 2}, {2, 1}, {7, 31}},
      {{1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}},
      {{3}, {1}, {4, 2}, {3}, {12}},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {3, 22}},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {3, 24}},
  };
  struct Channels {
    int64_t in, out, groups;
  };
  size_t number = 0;
  for (const WindowCase& window : windows)
    for (const Channels& c : {Channels{128, 128, 32}, Channels{12, 12, 3}, Channels{12, 24, 3},
                              Channels{5, 10, 5}, Channels{34, 68, 17}, Channels{6, 24, 6},
                              Channels{6, 12, 3}, Channels{4, 32, 4}, Channels{20, 40, 10}})
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(fmt::format("window {}, {} -> {} in {}", number, c.in, c.out, c.groups));
        TestInputs inputs{
            random_f32(with_axes_of({2}, window.image, c.in), 1),
            random_f32(with_axes_of({c.out, c.in / c.groups},
                                    Shape(window.kernel.begin(), window.kernel.end())),
                       2),
            std::nullopt, std::nullopt};
        const NamedAttrs attrs = with_tile_activation({{"groups", c.groups},
                                                       {"strides", window.strides},
                                                       {"pads", window.pads},
                                                       {"dilations", window.output_padding}},
                                                      number++);
        if (number % 3) inputs[2] = random_f32({c.out}, 3);
        if (residual)
          inputs[3] =
              TestTensor(infer_outputs(get_op("conv"), Attrs(get_op("conv"), attrs), inputs, 1)[0])
                  .fill(4, -1, 1);
        expect_same({"conv", "grouped", inputs, attrs, 1, {1}}, 5e-5);
      }
}

TEST_F(DirectConvolutions, WeightsWithChannelsLast) {
  expect_same({"conv",
               "grouped",
               {random_f32({1, 9, 8, 16}, 1), random_f32({3, 3, 4, 16}, 2)},
               with_tile_activation(
                   {{"weights_layout", "*IO"}, {"groups", 4}, {"pads", Ints{1, 1, 1, 1}}}, 1),
               1,
               {1}},
              5e-5);
  expect_same({"conv",
               "direct",
               {random_f32({1, 9, 40, 3}, 1), random_f32({3, 3, 3, 20}, 2)},
               with_tile_activation({{"weights_layout", "*IO"}, {"pads", Ints{1, 1, 1, 1}}}, 1),
               1,
               {1}},
              5e-5);
}

TEST_F(DirectConvolutions, OthersAreRefused) {
  const auto refused = [](const char* op, Shape x, Shape w, const NamedAttrs& attrs,
                          std::vector<size_t> constant = {1}, const char* kernel = "direct") {
    KernelCase test{op,
                    kernel,
                    {random_f32(std::move(x), 1), random_f32(std::move(w), 2)},
                    with_tile_activation(attrs, 0),
                    1,
                    std::move(constant)};
    return !testing::run_cpu_kernel(test).kernel;
  };
  EXPECT_FALSE(refused("conv_transpose", {1, 4, 4, 3}, {3, 8, 2, 2}, {{"strides", Ints{2, 2}}}));
  EXPECT_TRUE(refused("conv_transpose", {1, 4, 4, 3}, {3, 8, 2, 2}, {}));
  EXPECT_TRUE(refused("conv_transpose", {1, 4, 4, 3}, {3, 8, 2, 2}, {{"strides", Ints{2, 2}}}, {}));
  EXPECT_TRUE(refused("conv_transpose", {1, 4, 4, 3}, {3, 8, 2, 2},
                      {{"dilations", Ints{2, 2}}, {"strides", Ints{2, 2}}}));
  EXPECT_TRUE(refused("conv_transpose", {1, 4, 4, 4, 3}, {3, 8, 2, 2, 2}, {}));
  EXPECT_TRUE(refused("conv_transpose", {1, 4, 4, 6}, {6, 1, 2, 2}, {{"groups", 6}}));
  EXPECT_FALSE(refused("conv", {1, 4, 4, 3}, {8, 3, 2, 2}, {}));
  EXPECT_TRUE(refused("conv", {1, 4, 4, 3}, {8, 3, 2, 2}, {}, {}));
  EXPECT_TRUE(refused("conv", {1, 9, 9, 3}, {8, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}));
  EXPECT_TRUE(refused("conv", {1, 4, 4, 40}, {8, 40, 2, 2}, {}));
  const auto not_grouped = [&](int64_t in, int64_t out, int64_t groups) {
    return refused("conv", {1, 4, 4, in}, {out, in / groups, 2, 2}, {{"groups", groups}}, {1},
                   "grouped");
  };
  EXPECT_FALSE(not_grouped(16, 16, 4));
  EXPECT_TRUE(not_grouped(16, 16, 1));
  EXPECT_TRUE(not_grouped(16, 16, 16));
  EXPECT_TRUE(not_grouped(16, 8, 4));
  EXPECT_TRUE(not_grouped(40, 40, 5));
  EXPECT_TRUE(not_grouped(9, 9, 3));
}

}  // namespace
}  // namespace anymps
