// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

// A convolution the other way round: every input element is scattered to the outputs it reaches.
std::vector<double> scatter_conv2d(const TestTensor& x, const TestTensor& w, const Shape& y,
                                   int64_t groups, Ints stride, Ints dilation, Ints pad) {
  std::vector<double> out(static_cast<size_t>(element_count(y)));
  const int64_t per_group = x.shape()[1] / groups, outputs = y[1] / groups;
  for_each_index(x.shape(), [&](const Shape& from) {
    for_each_index(Shape{outputs, w.shape()[2], w.shape()[3]}, [&](const Shape& tap) {
      const int64_t group = from[1] / per_group, o = group * outputs + tap[0];
      const int64_t h = from[2] + pad[0] - tap[1] * dilation[0];
      const int64_t v = from[3] + pad[1] - tap[2] * dilation[1];
      if (h < 0 || v < 0 || h % stride[0] || v % stride[1]) return;
      const int64_t row = h / stride[0], column = v / stride[1];
      if (row >= y[2] || column >= y[3]) return;
      out[static_cast<size_t>(((from[0] * y[1] + o) * y[2] + row) * y[3] + column)] +=
          x.get(from).real() * w.get({o, from[1] % per_group, tap[1], tap[2]}).real();
    });
  });
  return out;
}

TEST(ReferenceConv, AgreesWithScattering) {
  const TestTensor x = TestTensor(DType::kF64, {2, 6, 9, 8}).fill(1);
  const TestTensor w = TestTensor(DType::kF64, {4, 3, 3, 2}).fill(2);
  const TestTensor y = run_reference("conv", {x, w},
                                     {{"groups", 2},
                                      {"strides", Ints{2, 1}},
                                      {"dilations", Ints{1, 3}},
                                      {"pads", Ints{2, 1, 0, 3}}});
  ASSERT_EQ(y.shape(), (Shape{2, 4, 5, 9}));
  const TestTensor expected(DType::kF64, y.shape(),
                            scatter_conv2d(x, w, y.shape(), 2, {2, 1}, {1, 3}, {2, 1}));
  EXPECT_TRUE(same(y, expected, 1e-12));
}

TEST(ReferenceConv, OneDimension) {
  const TestTensor x(DType::kF32, {1, 2, 4}, {1, 2, 3, 4, 10, 20, 30, 40});
  const TestTensor w(DType::kF32, {1, 2, 2}, {1, -1, 2, 0.5});
  const TestTensor bias(DType::kF32, {1}, {100});
  EXPECT_TRUE(same(run_reference("conv", {x, w, bias}),
                   TestTensor(DType::kF32, {1, 1, 3}, {129, 154, 179})));
}

TEST(ReferenceConv, ThreeDimensions) {
  const TestTensor x(DType::kF32, {1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor w(DType::kF32, {1, 1, 2, 1, 2}, {1, 10, 100, 1000});
  EXPECT_TRUE(
      same(run_reference("conv", {x, w}), TestTensor(DType::kF32, {1, 1, 1, 2, 1}, {6521, 8743})));
}

TEST(ReferenceConv, LayoutsGiveTheSameNumbers) {
  const TestTensor x = TestTensor(DType::kF32, {2, 4, 6, 5}).fill(3);
  const TestTensor w = TestTensor(DType::kF32, {6, 2, 3, 3}).fill(4);
  const TestTensor bias = TestTensor(DType::kF32, {6}).fill(5);
  const NamedAttrs plain{{"groups", 2}, {"pads", Ints{1, 1, 1, 1}}};
  const TestTensor y = run_reference("conv", {x, w, bias}, plain);
  TestTensor x_last(DType::kF32, {2, 6, 5, 4}), w_last(DType::kF32, {3, 3, 2, 6});
  for_each_index(x.shape(), [&](const Shape& at) {
    x_last.put({at[0], at[2], at[3], at[1]}, x.get(at));
  });
  for_each_index(w.shape(), [&](const Shape& at) {
    w_last.put({at[2], at[3], at[1], at[0]}, w.get(at));
  });
  NamedAttrs last = plain;
  last.emplace_back("layout", "channels_last");
  last.emplace_back("weights_layout", "*IO");
  const TestTensor y_last = run_reference("conv", {x_last, w_last, bias}, last);
  ASSERT_EQ(y_last.shape(), (Shape{2, 6, 5, 6}));
  for_each_index(y.shape(), [&](const Shape& at) {
    EXPECT_EQ(y.get(at), y_last.get({at[0], at[2], at[3], at[1]})) << to_string(at);
  });
  EXPECT_TRUE(
      same(run_reference("conv", {x.scrambled(), w.scrambled(), bias.scrambled()}, plain), y));
}

TEST(ReferenceConv, ResidualComesBeforeTheActivation) {
  const TestTensor x(DType::kF32, {1, 1, 3}, {1, -2, 3}), w(DType::kF32, {1, 1, 1}, {2});
  const TestTensor residual(DType::kF32, {1, 1, 3}, {-5, 1, 1});
  EXPECT_TRUE(same(run_reference("conv", {x, w, std::nullopt, residual}, {{"activation", "relu"}}),
                   TestTensor(DType::kF32, {1, 1, 3}, {0, 0, 7})));
  EXPECT_TRUE(same(run_reference("conv", {x, w, std::nullopt, residual},
                                 {{"activation", "leaky_relu"}, {"alpha", 0.5}}),
                   TestTensor(DType::kF32, {1, 1, 3}, {-1.5, -1.5, 7})));
}

TEST(ReferenceConv, IntegersWrapAndClamp) {
  const TestTensor x(DType::kI8, {1, 1, 2}, {100, -3}), w(DType::kI8, {1, 1, 1}, {2});
  EXPECT_TRUE(same(run_reference("conv", {x, w}), TestTensor(DType::kI8, {1, 1, 2}, {-56, -6})));
  EXPECT_TRUE(same(
      run_reference("conv", {x, w}, {{"activation", "clamp"}, {"alpha", -10.5}, {"beta", 1000.0}}),
      TestTensor(DType::kI8, {1, 1, 2}, {-10, -6})));
}

TEST(ReferenceConv, HalvesAccumulateWide) {
  // 2048 + 1 is 2048 in f16: adding the ones to a f16 sum would lose them all.
  std::vector<double> values(65, 1.0);
  values[0] = 2048;
  const TestTensor x(DType::kF16, {1, 65, 1}, values);
  const TestTensor w(DType::kF16, {1, 65, 1}, std::vector<double>(65, 1.0));
  EXPECT_TRUE(same(run_reference("conv", {x, w}), TestTensor(DType::kF16, {1, 1, 1}, {2112})));
}

TEST(ReferenceConvTranspose, IsTheTransposeOfConv) {
  // <conv(x), g> == <x, conv_transpose(g)> for the same weights.
  const TestTensor x = TestTensor(DType::kF64, {2, 4, 7, 6}).fill(1);
  const TestTensor w = TestTensor(DType::kF64, {6, 2, 3, 2}).fill(2);
  const NamedAttrs attrs{{"groups", 2},
                         {"strides", Ints{2, 2}},
                         {"dilations", Ints{1, 2}},
                         {"pads", Ints{1, 1, 0, 1}}};
  const TestTensor y = run_reference("conv", {x, w}, attrs);
  const TestTensor g = TestTensor(DType::kF64, y.shape()).fill(3);
  NamedAttrs back = attrs;
  back.emplace_back("output_padding", Ints{1, 1});
  const TestTensor gx = run_reference("conv_transpose", {g, w}, back);
  ASSERT_EQ(gx.shape()[1], 4);
  double left = 0, right = 0;
  for_each_index(y.shape(), [&](const Shape& at) { left += y.get(at).real() * g.get(at).real(); });
  for_each_index(x.shape(), [&](const Shape& at) {
    if (at[2] < gx.shape()[2] && at[3] < gx.shape()[3])
      right += x.get(at).real() * gx.get(at).real();
  });
  ASSERT_GE(gx.shape()[2], 7);
  ASSERT_GE(gx.shape()[3], 6);
  EXPECT_NEAR(left, right, 1e-10);
}

TEST(ReferenceConvTranspose, OutputShapeBeyondTheInputsReachHoldsTheBias) {
  const TestTensor x(DType::kF32, {1, 1, 2}, {1, 10}), w(DType::kF32, {1, 1, 2}, {1, 2});
  const TestTensor bias(DType::kF32, {1}, {100});
  EXPECT_TRUE(same(run_reference("conv_transpose", {x, w, bias},
                                 {{"strides", Ints{3}}, {"output_shape", Ints{6}}}),
                   TestTensor(DType::kF32, {1, 1, 6}, {101, 102, 100, 110, 120, 100})));
}

TEST(ReferenceConvTranspose, SamePaddingCutsTheOddElement) {
  // Full result [1, 2, 3+1, 2, 3]: five elements, four wanted.
  const TestTensor x(DType::kF32, {1, 1, 2}, {1, 1}), w(DType::kF32, {1, 1, 3}, {1, 2, 3});
  EXPECT_TRUE(same(
      run_reference("conv_transpose", {x, w}, {{"strides", Ints{2}}, {"auto_pad", "same_upper"}}),
      TestTensor(DType::kF32, {1, 1, 4}, {1, 2, 4, 2})));
  EXPECT_TRUE(same(
      run_reference("conv_transpose", {x, w}, {{"strides", Ints{2}}, {"auto_pad", "same_lower"}}),
      TestTensor(DType::kF32, {1, 1, 4}, {2, 4, 2, 3})));
}

// Gradients are transposes: <conv(x, w), g> = <x, data(g, w)> = <w, weights(g, x)>.
TEST(ReferenceConvGradient, IsTheTranspose) {
  struct Case {
    Shape x, w;
    NamedAttrs attrs;
  };
  const std::vector<Case> cases = {
      {{2, 3, 9}, {4, 3, 3}, {{"strides", std::vector<int64_t>{2}}}},
      {{1, 4, 7, 8}, {6, 2, 3, 2}, {{"groups", 2}, {"pads", std::vector<int64_t>{1, 0, 2, 1}}}},
      {{1, 7, 8, 3},
       {3, 2, 3, 4},
       {{"layout", "channels_last"},
        {"weights_layout", "*IO"},
        {"auto_pad", "same_upper"},
        {"strides", std::vector<int64_t>{2, 2}}}},
      {{1, 2, 4, 5, 6},
       {2, 1, 2, 2, 2},
       {{"groups", 2}, {"dilations", std::vector<int64_t>{1, 2, 1}}}}};
  const auto dot = [](const TestTensor& a, const TestTensor& b) {
    double sum = 0;
    for_each_index(a.shape(), [&](const Shape& at) { sum += (a.get(at) * b.get(at)).real(); });
    return sum;
  };
  for (const Case& c : cases) {
    const TestTensor x = TestTensor(DType::kF64, c.x).fill(1),
                     w = TestTensor(DType::kF64, c.w).fill(2);
    const TestTensor y = run_reference("conv", {x, w}, c.attrs);
    const TestTensor g = TestTensor(DType::kF64, y.shape()).fill(3);
    const auto with_shape = [&](const Shape& shape) {
      NamedAttrs attrs = c.attrs;
      attrs.emplace_back("shape", std::vector<int64_t>(shape.begin(), shape.end()));
      return attrs;
    };
    const double expected = dot(y, g);
    EXPECT_NEAR(dot(x, run_reference("conv_data_gradient", {g, w}, with_shape(c.x))), expected,
                1e-9);
    EXPECT_NEAR(dot(w, run_reference("conv_weights_gradient", {g, x}, with_shape(c.w))), expected,
                1e-9);
  }
}

}  // namespace
}  // namespace anymps
