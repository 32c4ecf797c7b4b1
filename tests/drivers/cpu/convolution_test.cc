// SPDX-License-Identifier: Apache-2.0
#include "against_reference.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::TestInputs;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

class ConvolutionOnCpu : public ::testing::TestWithParam<const char*> {};

TEST_P(ConvolutionOnCpu, SamplesWithPackedWeights) {
  const Op& op = get_op(GetParam());
  for (const Sample& sample : op.test.samples) {
    SCOPED_TRACE(sample.label);
    expect_same({GetParam(), "onednn", inputs_of(op, sample, DType::kF32), sample.attrs, 1, {1, 2}},
                op.test.tolerance.f32);
  }
}

TEST_P(ConvolutionOnCpu, SamplesWithWeightsOfTheRun) {
  const Op& op = get_op(GetParam());
  for (const Sample& sample : op.test.samples) {
    SCOPED_TRACE(sample.label);
    expect_same({GetParam(), "onednn", inputs_of(op, sample, DType::kF32), sample.attrs},
                op.test.tolerance.f32);
  }
}

TEST_P(ConvolutionOnCpu, SamplesWithStridedInputs) {
  const Op& op = get_op(GetParam());
  for (const Sample& sample : op.test.samples) {
    SCOPED_TRACE(sample.label);
    TestInputs inputs = inputs_of(op, sample, DType::kF32);
    for (auto& input : inputs)
      if (input) input = spread(*input);
    expect_same({GetParam(), "onednn", inputs, sample.attrs}, op.test.tolerance.f32);
  }
}

TEST_P(ConvolutionOnCpu, SamplesInHalfPrecision) {
  const Op& op = get_op(GetParam());
  for (const DType dtype : {DType::kBF16, DType::kF16})
    for (const Sample& sample : op.test.samples) {
      SCOPED_TRACE(sample.label + " " + name(dtype));
      expect_same({GetParam(), "onednn", inputs_of(op, sample, dtype), sample.attrs, 1, {1, 2}},
                  op.test.tolerance.of(dtype));
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, ConvolutionOnCpu, ::testing::Values("conv", "conv_transpose"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ConvolutionOnCpuLayouts, WritesAStridedResult) {
  const TestTensor x = TestTensor(DType::kF32, {2, 6, 5, 8}).fill(1);
  const TestTensor w = TestTensor(DType::kF32, {16, 8, 3, 3}).fill(2);
  KernelCase test{"conv", "onednn", {x, w}, {{"layout", "channels_last"}}, 1, {1}};
  test.out_strides = Strides{4 * 3 * 20, 3 * 20, 20, 1};
  expect_same(test, 5e-5);
}

TEST(ConvolutionOnCpuLayouts, DepthwiseTakesTheFastImplementation) {
  const TestTensor x = TestTensor(DType::kF32, {1, 14, 14, 64}).fill(1);
  const TestTensor w = TestTensor(DType::kF32, {64, 1, 3, 3}).fill(2);
  KernelCase test{"conv", "onednn",
                  {x, w}, {{"layout", "channels_last"}, {"groups", 64}, {"pads", Ints{1, 1, 1, 1}}},
                  1,      {1}};
  const auto result = testing::run_cpu_kernel(test);
  ASSERT_TRUE(result.kernel) << result.why;
  EXPECT_TRUE(result.kernel->detail().starts_with("jit_dw:")) << result.kernel->detail();
  EXPECT_FALSE(result.kernel->reads(1));
  EXPECT_EQ(result.kernel->scratch_bytes(), 0u);
}

// A picture that is one pixel wide, or high, is a line: with a residual, a bias, groups, strides.
TEST(ConvolutionOnCpuLayouts, UnitAxesAreLeftOut) {
  for (const bool wide : {false, true}) {
    const Shape x = wide ? Shape{2, 8, 1, 40} : Shape{2, 8, 40, 1};
    const Shape w = wide ? Shape{6, 4, 1, 5} : Shape{6, 4, 5, 1};
    const Shape y = wide ? Shape{2, 6, 1, 18} : Shape{2, 6, 18, 1};
    const Ints strides = wide ? Ints{3, 2} : Ints{2, 3};
    expect_same({"conv",
                 "onednn",
                 {TestTensor(DType::kF32, x).fill(1), TestTensor(DType::kF32, w).fill(2),
                  TestTensor(DType::kF32, {6}).fill(3), TestTensor(DType::kF32, y).fill(4)},
                 {{"groups", 2}, {"strides", strides}},
                 1,
                 {1, 2}},
                5e-5);
  }
  // A window that reaches into the padding keeps its axis.
  expect_same({"conv",
               "onednn",
               {TestTensor(DType::kF32, {1, 3, 9, 1}).fill(1),
                TestTensor(DType::kF32, {4, 3, 3, 3}).fill(2)},
               {{"pads", Ints{1, 1, 1, 1}}}},
              5e-5);
  expect_same({"conv",
               "onednn",
               {TestTensor(DType::kF32, {2, 5, 1, 1}).fill(1),
                TestTensor(DType::kF32, {4, 5, 1, 1}).fill(2)},
               {}},
              5e-5);
}

TEST(ConvolutionOnCpuLayouts, RefusesWhatItCannotDo) {
  const auto why = [](DType dtype, bool negative) {
    TestTensor x = TestTensor(dtype, {1, 3, 6, 6}).fill(1);
    if (negative) x = x.scrambled();
    KernelCase test{"conv", "onednn", {x, TestTensor(dtype, {4, 3, 3, 3}).fill(2)}, {}};
    const auto result = testing::run_cpu_kernel(test);
    EXPECT_FALSE(result.kernel);
    return result.why;
  };
  EXPECT_EQ(why(DType::kI32, false), "dtype i32");
  EXPECT_EQ(why(DType::kF64, false), "dtype f64");
  EXPECT_EQ(why(DType::kF32, true), "input 0 has strides that are not positive");
}

}  // namespace
}  // namespace anymps
