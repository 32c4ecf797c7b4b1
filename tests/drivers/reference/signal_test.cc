// SPDX-License-Identifier: Apache-2.0
// Expected numbers are those of NumPy's fft and of ONNX's reference evaluator.
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

TestTensor complex(const Shape& shape, const Values& real, const Values& imaginary) {
  TestTensor tensor(DType::kC64, shape);
  size_t i = 0;
  for_each_index(shape, [&](const Shape& at) {
    tensor.put(at, {real[i], imaginary[i]});
    ++i;
  });
  return tensor;
}

const TestTensor& five() {
  static const TestTensor tensor(DType::kF32, {5}, {1, 2, 3, 5, 8});
  return tensor;
}

TEST(ReferenceFft, OneAxisAndBack) {
  const TestTensor y = run_reference("fft", {five()});
  EXPECT_TRUE(same(y,
                   complex({5}, {19, -2.3819661, -4.6180339, -4.6180339, -2.3819661},
                           {0, 6.8819094, 1.6245985, -1.6245985, -6.8819094}),
                   1e-6));
  EXPECT_TRUE(same(run_reference("fft", {y}, {{"inverse", true}, {"scaling", "size"}}),
                   complex({5}, {1, 2, 3, 5, 8}, {0, 0, 0, 0, 0}), 1e-6));
}

TEST(ReferenceFft, TwoAxesUnitary) {
  const TestTensor x(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 7});
  EXPECT_TRUE(
      same(run_reference("fft", {x}, {{"axes", Ints{0, 1}}, {"scaling", "unitary"}}),
           complex({2, 3}, {8.9814625, -1.428869, -1.428869, -4.0824828, 0.20412414, 0.20412414},
                   {0, 1.0606601, -1.0606601, 0, -0.35355338, 0.35355338}),
           1e-6));
}

TEST(ReferenceFft, RealAndHermitean) {
  EXPECT_TRUE(same(run_reference("real_to_hermitean_fft", {five()}),
                   complex({3}, {19, -2.3819661, -4.6180339}, {0, 6.8819094, 1.6245985}), 1e-6));
  const TestTensor z = complex({3}, {1, 3, -2}, {2, -1, 0.5});
  const NamedAttrs inverse{{"inverse", true}, {"scaling", "size"}};
  EXPECT_TRUE(same(run_reference("hermitean_to_real_fft", {z}, inverse),
                   TestTensor(DType::kF32, {4}, {1.25, 1.25, -1.75, 0.25}), 1e-6));
  NamedAttrs odd = inverse;
  odd.emplace_back("round_to_odd", true);
  EXPECT_TRUE(same(
      run_reference("hermitean_to_real_fft", {z}, odd),
      TestTensor(DType::kF32, {5}, {0.6, 1.4808995, -0.59270858, -1.4433594, 0.95516843}), 1e-6));
}

TEST(ReferenceDft, FilledUpAndOnesided) {
  const TestTensor x(DType::kF32, {1, 5, 1}, {1, 2, 3, 5, 8});
  EXPECT_TRUE(
      same(run_reference("dft", {x, TestTensor(DType::kI64, {}, {8})}, {{"onesided", true}}),
           TestTensor(DType::kF32, {1, 5, 2},
                      {19, 0, -9.1213207, -7.9497476, 6, 3, -4.8786798, -1.9497474, 5, 0}),
           1e-6));
}

TEST(ReferenceStft, FramesUnderAWindow) {
  const TestTensor x(DType::kF32, {1, 8, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(same(
      run_reference("stft", {x, TestTensor(DType::kI64, {}, {3}),
                             TestTensor(DType::kF32, {4}, {0.5, 1, 1, 0.5})}),
      TestTensor(DType::kF32, {1, 2, 3, 2}, {7.5, 0, -2.5, 0, -0.5, 0, 16.5, 0, -4, -1.5, -0.5, 0}),
      1e-6));
}

struct WindowCase {
  const char* kind;
  bool periodic;
  Values expected;
};

class ReferenceWindow : public ::testing::TestWithParam<WindowCase> {};

TEST_P(ReferenceWindow, SixElements) {
  EXPECT_TRUE(same(
      run_reference("window", {},
                    {{"size", 6}, {"kind", GetParam().kind}, {"periodic", GetParam().periodic}}),
      TestTensor(DType::kF32, {6}, GetParam().expected), 1e-6));
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferenceWindow,
    ::testing::Values(
        WindowCase{"hann", false, {0, 0.34549153, 0.90450853, 0.90450847, 0.34549144, 0}},
        WindowCase{"hann", true, {0, 0.25, 0.75, 1, 0.75, 0.25}},
        WindowCase{"hamming",
                   false,
                   {0.086956523, 0.40240529, 0.91281211, 0.91281211, 0.40240523, 0.086956523}},
        WindowCase{
            "hamming", true, {0.086956523, 0.31521741, 0.77173913, 1, 0.77173907, 0.31521732}},
        WindowCase{"blackman", false, {0, 0.20077014, 0.84922987, 0.84922987, 0.20077014, 0}},
        WindowCase{"blackman", true, {0, 0.13, 0.63, 1, 0.63, 0.13}}));

TEST(ReferenceMel, ThreeBins) {
  const auto whole = [](double value) { return TestTensor(DType::kI64, {}, {value}); };
  const auto hertz = [](double value) { return TestTensor(DType::kF32, {}, {value}); };
  Values expected(27, 0.0);
  expected[0] = expected[4] = expected[11] = 1;
  expected[7] = expected[8] = 0.5;
  EXPECT_TRUE(same(run_reference("mel_weight_matrix",
                                 {whole(3), whole(16), whole(8000), hertz(100), hertz(3500)}),
                   TestTensor(DType::kF32, {9, 3}, expected), 1e-6));
}

}  // namespace
}  // namespace anymps
