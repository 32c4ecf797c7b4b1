// SPDX-License-Identifier: Apache-2.0
// Complex numbers of doubles: expected numbers are NumPy's, and no number of floats is as near.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

constexpr double kSlack = 1e-15;

using Complexes = std::vector<WideComplex>;

TestTensor wide(const Shape& shape, const Complexes& numbers) {
  return TestTensor::of<WideComplex>(shape, numbers);
}

const Complexes kFirst = {{0.3, 0.7}, {-1.25, 0.5}}, kSecond = {{2, -1.0 / 3}, {0.1, 0.2}};

TEST(ReferenceWideComplex, Functions) {
  const std::pair<const char*, Complexes> cases[] = {
      {"exp",
       {{1.0324289629116616, 0.8696029191140402}, {0.25143161362244643, 0.13735771654738441}}},
      {"log",
       {{-0.27236358772083602, 1.1659045405098132}, {0.29735355387334639, 2.7610862764774282}}},
      {"sqrt",
       {{0.72855243825904215, 0.48040467867538028}, {0.21942105845112725, 1.1393619270854249}}},
      {"rsqrt",
       {{0.95663621819048084, -0.63080224685985409}, {0.16298187060899494, -0.84629679342474184}}},
      {"reciprocal",
       {{0.51724137931034497, -1.2068965517241381}, {-0.68965517241379315, -0.27586206896551729}}},
      {"sin",
       {{0.37092780393896435, 0.72470269042328528}, {-1.0700996973668526, 0.16431300276137265}}},
      {"cos",
       {{1.199108751098743, -0.22417681233754289}, {0.35556568324712101, 0.49451143013196674}}},
      {"tan",
       {{0.18971709151908692, 0.63983593026317997}, {-0.80663469885107364, 1.5839635482844237}}},
      {"sinh",
       {{0.23290996731262684, 0.67342555995257891}, {-1.4058162504314684, 0.90535863442095732}}},
      {"cosh",
       {{0.79951899559903483, 0.1961773591614612}, {1.6572478640539148, -0.76800091787357283}}},
      {"tanh",
       {{0.46970516596755807, 0.72703718624352009}, {-0.90672480431943114, 0.12610856648423441}}},
      {"square", {{-0.4, 0.42}, {1.3125, -1.25}}},
      {"neg", {{-0.3, -0.7}, {1.25, -0.5}}},
      {"conjugate", {{0.3, -0.7}, {-1.25, -0.5}}},
  };
  for (const auto& [op, expected] : cases)
    EXPECT_TRUE(same(run_reference(op, {wide({2}, kFirst)}), wide({2}, expected), kSlack)) << op;
}

TEST(ReferenceWideComplex, Arithmetic) {
  const std::pair<const char*, Complexes> cases[] = {
      {"add", {{2.3, 0.7 - 1.0 / 3}, {-1.15, 0.7}}},
      {"sub", {{-1.7, 0.7 + 1.0 / 3}, {-1.35, 0.3}}},
      {"mul", {{0.83333333333333326, 1.2999999999999998}, {-0.225, -0.2}}},
      {"div", {{0.089189189189189208, 0.36486486486486491}, {-0.5, 6}}},
      {"pow",
       {{-0.64372110264699844, 0.56344433358341739}, {0.55996649619839267, 0.19529995917119283}}},
  };
  for (const auto& [op, expected] : cases)
    EXPECT_TRUE(same(run_reference(op, {wide({2}, kFirst), wide({2}, kSecond)}),
                     wide({2}, expected), kSlack))
        << op;
  const TestTensor near = wide({2}, {{0.3, 0.7 + 2e-16}, {-1.25, 0.5}});
  EXPECT_EQ(run_reference("equal", {wide({2}, kFirst), near}).values(), (Row{0, 1}));
  EXPECT_EQ(run_reference("not_equal", {wide({2}, kFirst), near}).values(), (Row{1, 0}));
}

TEST(ReferenceWideComplex, Parts) {
  const TestTensor x = wide({2}, kFirst);
  EXPECT_TRUE(same(run_reference("real_part", {x}), TestTensor::of<double>({2}, {0.3, -1.25})));
  EXPECT_TRUE(same(run_reference("imaginary_part", {x}), TestTensor::of<double>({2}, {0.7, 0.5})));
  EXPECT_TRUE(same(run_reference("complex_abs", {x}),
                   TestTensor::of<double>({2}, {0.76157731058639078, 1.3462912017836259}), kSlack));
  EXPECT_TRUE(same(run_reference("absolute_square", {x}),
                   TestTensor::of<double>({2}, {0.58, 1.8125}), kSlack));
  EXPECT_TRUE(
      same(run_reference("planar", {x}), TestTensor::of<double>({4}, {0.3, -1.25, 0.7, 0.5})));
  EXPECT_TRUE(same(run_reference("make_complex", {TestTensor::of<double>({2}, {0.3, -1.25}),
                                                  TestTensor::of<double>({2}, {0.7, 0.5})}),
                   x));
}

TEST(ReferenceWideComplex, Casts) {
  const auto cast = [](const TestTensor& x, DType to) {
    return run_reference("cast", {x}, {{"dtype", to}});
  };
  const TestTensor x = wide({2}, kFirst);
  EXPECT_TRUE(
      same(cast(x, DType::kC64), TestTensor::of<Complex>({2}, {{0.3f, 0.7f}, {-1.25f, 0.5f}})));
  EXPECT_TRUE(same(cast(x, DType::kF64), TestTensor::of<double>({2}, {0.3, -1.25})));
  EXPECT_TRUE(same(cast(TestTensor::of<Complex>({1}, {{0.3f, 0.7f}}), DType::kC128),
                   wide({1}, {{0.3f, 0.7f}})));
  EXPECT_TRUE(same(cast(TestTensor::of<double>({1}, {0.1}), DType::kC128), wide({1}, {{0.1, 0}})));
  EXPECT_TRUE(same(cast(TestTensor::of<int64_t>({1}, {(int64_t{1} << 53) - 1}), DType::kC128),
                   wide({1}, {{0x1p53 - 1, 0}})));
}

TEST(ReferenceWideComplex, SumsAndProducts) {
  const TestTensor x = wide({2}, {{1e8 + 0.5, 1}, {-1e8, 0x1p-40}});  // floats keep neither part
  EXPECT_TRUE(same(run_reference("reduce_sum", {x}), wide({1}, {{0.5, 1 + 0x1p-40}})));
  EXPECT_TRUE(same(run_reference("reduce_mean", {x}), wide({1}, {{0.25, 0.5 + 0x1p-41}})));
  EXPECT_TRUE(same(run_reference("reduce_prod", {wide({2}, {kFirst[0], kSecond[0]})}),
                   wide({1}, {{0.83333333333333326, 1.2999999999999998}}), kSlack));
  EXPECT_TRUE(same(run_reference("matmul", {wide({1, 2}, kFirst), wide({2, 1}, kSecond)}),
                   wide({1, 1}, {{0.60833333333333328, 1.1}}), kSlack));
}

TEST(ReferenceWideComplex, Fourier) {
  const TestTensor x = TestTensor::of<double>({5}, {1, 2, 3, 5, 8});
  const Complexes spectrum = {{19, 0},
                              {-2.3819660112501051, 6.8819096023558668},
                              {-4.6180339887498949, 1.6245984811645318},
                              {-4.6180339887498949, -1.6245984811645318},
                              {-2.3819660112501051, -6.8819096023558668}};
  EXPECT_TRUE(same(run_reference("fft", {x}), wide({5}, spectrum), 1e-14));
  EXPECT_TRUE(same(run_reference("real_to_hermitean_fft", {x}),
                   wide({3}, {spectrum.begin(), spectrum.begin() + 3}), 1e-14));
  EXPECT_TRUE(same(run_reference("hermitean_to_real_fft", {wide({3}, {{1, 2}, {3, -1}, {-2, 0.5}})},
                                 {{"inverse", true}, {"scaling", "size"}, {"round_to_odd", true}}),
                   TestTensor::of<double>({5}, {0.6, 1.4808995448094617, -0.59270858457387499,
                                                -1.443359392925915, 0.95516843269032814}),
                   1e-14));
}

TEST(ReferenceWideComplex, Matrices) {
  const TestTensor x = wide({2, 2}, {{2, 0}, {0, 1}, {0.5, 0}, {3, -1}});
  EXPECT_TRUE(same(run_reference("inverse", {x}),
                   wide({2, 2}, {{0.48520710059171596, 0.035502958579881658},
                                 {0.059171597633136098, -0.14201183431952663},
                                 {-0.071005917159763315, -0.029585798816568049},
                                 {0.28402366863905326, 0.1183431952662722}}),
                   kSlack));
  EXPECT_TRUE(same(run_reference("det", {x}), wide({}, {{6, -2.5}}), kSlack));
  // Eigenvalues of doubles are complex numbers of doubles.
  EXPECT_TRUE(same(run_reference("eig", {TestTensor::of<double>({2, 2}, {0, -2, 1, 1})}),
                   wide({2}, {{0.5, -1.3228756555322954}, {0.5, 1.3228756555322954}}), kSlack));
}

}  // namespace
}  // namespace anymps::testing
