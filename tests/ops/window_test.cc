// SPDX-License-Identifier: Apache-2.0
#include "ops/layers/window.h"

#include <gtest/gtest.h>

#include "semantics/fused_activation.h"

namespace anymps {
namespace {

using Ints = std::vector<int64_t>;

Attrs conv(const NamedAttrs& attrs) { return Attrs(get_op("conv"), attrs); }
Attrs transposed(const NamedAttrs& attrs) { return Attrs(get_op("conv_transpose"), attrs); }

TEST(Window, SplitsTheOddElementOfSamePadding) {
  const Window upper =
      resolve_window(conv({{"auto_pad", "same_upper"}, {"strides", Ints{2, 1}}}), {7, 8}, {4, 3});
  EXPECT_EQ(upper.pads_begin, (Shape{1, 1}));
  EXPECT_EQ(upper.pads_end, (Shape{2, 1}));
  const Window lower =
      resolve_window(conv({{"auto_pad", "same_lower"}, {"strides", Ints{2, 1}}}), {7, 8}, {4, 3});
  EXPECT_EQ(lower.pads_begin, (Shape{2, 1}));
  EXPECT_EQ(lower.pads_end, (Shape{1, 1}));
}

TEST(Window, SamePaddingIsNeverNegative) {
  const Window window =
      resolve_window(conv({{"auto_pad", "same_upper"}, {"strides", Ints{5}}}), {9}, {2});
  EXPECT_EQ(window.pads_begin, (Shape{0}));
  EXPECT_EQ(window.pads_end, (Shape{0}));
}

TEST(Window, FillsInDefaults) {
  const Window window = resolve_window(conv({{"dilations", Ints{3}}}), {9}, {3});
  EXPECT_EQ(window.strides, (Shape{1}));
  EXPECT_EQ(window.pads_begin, (Shape{0}));
  EXPECT_EQ(window.span(0), 7);
  EXPECT_EQ(window.reach_end(0, 9, 3), 0);
}

TEST(Window, ValidIgnoresPads) {
  const Window window =
      resolve_window(conv({{"auto_pad", "valid"}, {"pads", Ints{4, 4}}}), {9}, {3});
  EXPECT_EQ(window.pads_begin, (Shape{0}));
  EXPECT_EQ(window.pads_end, (Shape{0}));
}

TEST(Window, TransposedPaddingFollowsTheOutputShape) {
  // Full extent 2*(3-1)+4 = 8, six are asked for: two are cut, or three of five.
  const Window six = resolve_transposed_window(
      transposed({{"strides", Ints{2}}, {"output_shape", Ints{6}}}), {3}, {4});
  EXPECT_EQ(six.pads_begin, (Shape{1}));
  const Window five = resolve_transposed_window(
      transposed({{"strides", Ints{2}}, {"output_shape", Ints{5}}}), {3}, {4});
  EXPECT_EQ(five.pads_begin, (Shape{2}));
  EXPECT_EQ(five.pads_end, (Shape{1}));
  const Window upper = resolve_transposed_window(
      transposed({{"strides", Ints{2}}, {"output_shape", Ints{5}}, {"auto_pad", "same_upper"}}),
      {3}, {4});
  EXPECT_EQ(upper.pads_begin, (Shape{1}));
  const Window more = resolve_transposed_window(
      transposed({{"strides", Ints{2}}, {"output_shape", Ints{9}}}), {3}, {4});
  EXPECT_EQ(more.pads_begin, (Shape{0}));
}

TEST(FusedActivation, Formulas) {
  const auto apply = [](const char* name, double x, double alpha = 0, double beta = 0) {
    return apply_activation(parse_activation(name), x, alpha, beta);
  };
  EXPECT_EQ(apply("none", -3), -3);
  EXPECT_EQ(apply("relu", -3), 0);
  EXPECT_EQ(apply("clamp", 7, -1, 6), 6);
  EXPECT_EQ(apply("clamp", -7, -1, 6), -1);
  EXPECT_EQ(apply("leaky_relu", -2, 0.25), -0.5);
  EXPECT_NEAR(apply("elu", -1, 2), 2 * (std::exp(-1.0) - 1), 1e-15);
  EXPECT_NEAR(apply("gelu", 1), 0.8413447460685429, 1e-12);
  EXPECT_NEAR(apply("gelu_tanh", 1), 0.8411919906082768, 1e-12);
  EXPECT_NEAR(apply("silu", 2), 2 / (1 + std::exp(-2.0)), 1e-15);
  EXPECT_NEAR(apply("sigmoid", 0), 0.5, 1e-15);
  EXPECT_NEAR(apply("tanh", 0.5), 0.46211715726000975, 1e-15);
  EXPECT_EQ(apply("hard_swish", 1.5), 1.5 * 0.75);
  EXPECT_EQ(apply("hard_swish", -4), 0);
  EXPECT_EQ(apply("hard_sigmoid", 1, 0.25, 0.5), 0.75);
  for (const std::string& name : activation_choices())
    EXPECT_TRUE(std::isnan(apply(name.c_str(), std::nan(""), 0.5, 0.5))) << name;
  EXPECT_THROW(parse_activation("nope"), Error);
}

}  // namespace
}  // namespace anymps
