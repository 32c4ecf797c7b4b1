// SPDX-License-Identifier: Apache-2.0
#include "passes/quantized/few_bits.h"

#include <cmath>

#include "support/tensor.h"

namespace anymps::testing {

namespace {

template <typename T>
std::vector<double> elements(const Constant& constant) {
  const auto bytes = constant.data();
  const T* from = reinterpret_cast<const T*>(bytes.get());
  std::vector<double> all;
  for (int64_t i = 0; i < constant.desc().count(); ++i)
    all.push_back(static_cast<double>(static_cast<Compute<T>>(from[i])));
  return all;
}

ConstantPtr matrix(DType dtype, Shape shape, const std::vector<double>& values) {
  const TestTensor tensor(dtype, shape, values);
  return Constant::copy(dtype, shape,
                        {static_cast<const std::byte*>(tensor.ptr()), tensor.desc().bytes()});
}

// The elements that the bits stand for, as the matrix has them.
std::vector<double> widened(const FewBitsMatrix& few, const FewBits& form, int64_t rows,
                            int64_t depth) {
  const std::vector<double> scales = elements<float>(*few.scales);
  const std::vector<double> w =
      form.bits == 8 ? elements<int8_t>(*few.w) : elements<uint8_t>(*few.w);
  std::vector<double> wide(static_cast<size_t>(rows * depth));
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t k = 0; k < depth; ++k) {
      double number = 0;
      if (form.bits == 8) {
        number = w[n * depth + k];
      } else {
        const auto both = static_cast<int>(w[(n * depth + k) / 2]);
        number = (k % 2 == 0 ? both >> 4 : both & 15) - 8;
      }
      const int64_t group = form.group == 0 ? 0 : k / form.group;
      wide[form.turns ? k * rows + n : n * depth + k] = number * scales[group * rows + n];
    }
  return wide;
}

TEST(FewBits, EachRowHasItsSteps) {
  const FewBits form;
  const auto few = in_few_bits(
      *matrix(DType::kF32, {3, 4}, {127, -64, 0.4, 0.6, 0, 0, 0, 0, -0.5, 0.25, 0, 0.5}), form);
  ASSERT_TRUE(few);
  EXPECT_EQ(elements<int8_t>(*few->w),
            (std::vector<double>{127, -64, 0, 1, 0, 0, 0, 0, -127, 64, 0, 127}));
  EXPECT_EQ(elements<float>(*few->scales),
            (std::vector<double>{1, 0, static_cast<double>(0.5f / 127)}));
}

TEST(FewBits, ColumnsBecomeRows) {
  const FewBits form{.turns = true};
  const auto few = in_few_bits(*matrix(DType::kF32, {2, 3}, {127, 1, 0, -127, 127, 12.7}), form);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->w->shape(), (Shape{3, 2}));
  EXPECT_EQ(elements<int8_t>(*few->w), (std::vector<double>{127, -127, 1, 127, 0, 127}));
}

// The first of two is in the upper half of a byte, and -8 is the furthest step.
TEST(FewBits, FourBitsOfGroups) {
  const FewBits form{.bits = 4, .group = 4};
  const auto few = in_few_bits(*matrix(DType::kF32, {1, 8}, {8, -7, 0, 3, -16, 14, -2, 0}), form);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->w->dtype(), DType::kU8);
  EXPECT_EQ(elements<uint8_t>(*few->w), (std::vector<double>{0x0f, 0x85, 0x0f, 0x78}));
  EXPECT_EQ(elements<float>(*few->scales), (std::vector<double>{-1, 2}));
  EXPECT_EQ(few->scales->shape(), (Shape{2, 1}));
}

TEST(FewBits, ErrorsAreSmall) {
  constexpr int64_t kRows = 45, kDepth = 96;
  for (const bool turns : {false, true})
    for (const FewBits form : {FewBits{8, 0, turns}, FewBits{4, 32, turns}}) {
      TestTensor tensor(DType::kF32, turns ? Shape{kDepth, kRows} : Shape{kRows, kDepth});
      tensor.fill(3, -1, 1);
      const std::vector<double> exact = tensor.values();
      const auto few = in_few_bits(*matrix(DType::kF32, tensor.shape(), exact), form);
      ASSERT_TRUE(few);
      const std::vector<double> wide = widened(*few, form, kRows, kDepth);
      double most = 0, squares = 0, all = 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        most = std::max(most, std::abs(wide[i] - exact[i]));
        squares += (wide[i] - exact[i]) * (wide[i] - exact[i]);
        all += exact[i] * exact[i];
      }
      // Half a step of 1 / 127; of 4 bits the step is at most 1 / 7, and clipping costs as much.
      EXPECT_LE(most, form.bits == 8 ? 0.5001 / 127 : 1.0 / 7) << form.bits << turns;
      EXPECT_LE(std::sqrt(squares / all), form.bits == 8 ? 0.005 : 0.07) << form.bits << turns;
      EXPECT_GT(squares, 0);
    }
}

TEST(FewBits, HalfTypesRoundBesideTheStepTheyHave) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const auto few = in_few_bits(*matrix(dtype, {1, 4}, {1, -0.5, 0.25, 0}), {});
    ASSERT_TRUE(few);
    EXPECT_EQ(few->scales->dtype(), dtype);
    const double scale =
        dtype == DType::kF16 ? elements<Half>(*few->scales)[0] : elements<BFloat>(*few->scales)[0];
    const std::vector<double> w = elements<int8_t>(*few->w);
    EXPECT_NEAR(w[0] * scale, 1, scale);
    EXPECT_NEAR(w[1] * scale, -0.5, 0.5001 * scale);
    EXPECT_NEAR(w[2] * scale, 0.25, 0.5001 * scale);
  }
}

TEST(FewBits, LargestAndSmallest) {
  const double large = std::numeric_limits<float>::max();
  for (const FewBits form : {FewBits{}, FewBits{4, 2}}) {
    const std::vector<double> exact{large, -large / 2, 0, 0};
    const auto few = in_few_bits(*matrix(DType::kF32, {2, 2}, exact), form);
    ASSERT_TRUE(few);
    const std::vector<double> wide = widened(*few, form, 2, 2);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(wide[i] / large, exact[i] / large, 0.07);
    // What a step cannot be told for stays as it is.
    EXPECT_FALSE(in_few_bits(*matrix(DType::kF32, {1, 2}, {4e-38, 0}), form));
    EXPECT_FALSE(in_few_bits(*matrix(DType::kF16, {1, 2}, {1e-6, 0}), form));
    for (const double wrong : {kInf, -kInf, kNan})
      EXPECT_FALSE(in_few_bits(*matrix(DType::kF32, {2, 2}, {1, 2, 3, wrong}), form)) << wrong;
  }
}

}  // namespace

}  // namespace anymps::testing
