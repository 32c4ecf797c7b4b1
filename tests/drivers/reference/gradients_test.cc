// SPDX-License-Identifier: Apache-2.0
// Gradients that are ops of their own against numbers of PyTorch's autograd, or made by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Values = std::vector<double>;

TestTensor wave(const Shape& shape, double step = 0.7, double scale = 1) {
  TestTensor tensor(DType::kF64, shape);
  Values values;
  for (int64_t i = 0; i < tensor.count(); ++i)
    values.push_back(std::sin(static_cast<double>(i) * step + 1) * scale);
  return tensor.set(values);
}

void expect_results(const std::vector<TestTensor>& results, const std::vector<Values>& expected) {
  ASSERT_GE(results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(same(results[i], f64(results[i].shape(), expected[i]), 1e-8)) << "output " << i;
}

TEST(SamplingGradients, OfGrids) {
  struct Case {
    const char *mode, *padding;
    bool align_corners;
    Values dx, dgrid;
  };
  const Case cases[] = {
      {"linear",
       "constant",
       false,
       {0, 0.44625, 0.07875, 0, 0.40375, 0.07125, 0, 0, -0.08},
       {-0.5095502451, -2.416414936, 0.7476992724, 0.04673120453}},
      {"linear",
       "border",
       true,
       {0, 0.315, 0.035, 0, 0.585, -0.335, 0, 0, -1.6},
       {-0.3483575178, -1.608469761, 0, -2.578142962}},
      {"linear",
       "reflection",
       true,
       {0, 0.315, 0.035, 0, 0.465, -0.215, 0, -0.48, -1.12},
       {-0.3483575178, -1.608469761, 0.9503999547, -1.947488809}},
      {"cubic",
       "constant",
       true,
       {-0.02385386719, 0.3790203047, 0.07474824219, -0.04726160156, 0.8055369141, -0.2634552734,
        0.006737554688, 0.09431050781, -1.53934293},
       {-0.7355087514, -2.073801068, 0.1002098551, -2.428460022}},
      {"cubic",
       "reflection",
       false,
       {-0.04292602515, 0.5036092493, 0.06743396338, -0.0455762384, 0.5261516205, 0.3201472742,
        0.00722101355, -0.004917119751, -2.331143738},
       {-0.7860301268, -2.967884504, 1.643386439, -1.790797372}},
  };
  const TestTensor gradient = f64({1, 1, 1, 2}, {1, -2}), x = wave({1, 1, 3, 3}),
                   grid = f64({1, 1, 2, 2}, {0.1, -0.35, 1.3, 0.8});
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.mode, c.padding));
    expect_results(
        run_reference_all(
            "grid_sample_gradient", {gradient, x, f64({1, 1, 2, 2}, grid.values())},
            {{"mode", c.mode}, {"padding", c.padding}, {"align_corners", c.align_corners}}),
        {c.dx, c.dgrid});
  }
}

TEST(SamplingGradients, OfRegions) {
  const TestTensor gradient = wave({1, 1, 2, 2}), x = wave({1, 1, 4, 4});
  const TestTensor image(DType::kI64, {1});
  expect_results(
      run_reference_all("roi_align_gradient",
                        {gradient, x, f64({1, 4}, {0.3, 0.6, 3.1, 2.9}), image},
                        {{"sampling_ratio", 2}}),
      {{0.136739035, 0.2092545243, 0.2094891912, 0.04028638292, 0.3620968876, 0.5148694746,
        0.4413430289, 0.08487365941, 0.2406337581, 0.247299658, 0.01925704429, 0.003703277748,
        0.01899740195, 0.01952365721, 0.00152029297, 0.0002923640327}});
  expect_results(
      run_reference_all("max_roi_pool_gradient", {gradient, x, f64({1, 5}, {0, 0, 1, 3, 3})}),
      {{0, 0, 0, 0, 0, 0, 0, 0, 0, 1.516934165, 1.033245473, 0, 0, 0, 0, 0}});
}

TEST(DeformConvGradient, OfAllInputs) {
  expect_results(
      run_reference_all("deform_conv_gradient",
                        {wave({1, 1, 2, 2}), wave({1, 1, 3, 3}), wave({1, 1, 2, 2}, 0.9),
                         wave({1, 8, 2, 2}, 1.3, 0.6), wave({1, 4, 2, 2}, 0.5)}),
      {{0.3955835378, 0.01210304816, 0.1037590626, 0.3912439899, -0.2814425667, -0.003030488588,
        -0.05029164538, -0.5161568167, -0.3310333082},
       {0.4484074099, 0.02987882777, 0.1530331398, -0.5356589192},
       {-0.4528333321,  -1.357893921,    -0.5591702904,  -0.02726639147, 0.2607443355,
        -0.2816195992,  -0.2274379466,   -0.00376332026, 0.1035529823,   0.5361860721,
        -0.219857595,   -0.01992726665,  0.007567929813, 0.1053888379,   -0.1253172403,
        -0.02579656405, 0.06964840916,   0.3729296133,   0.02444276287,  0.001572259915,
        0.1407917527,   0.0519844043,    0.03238302395,  0.001034641661, -0.009477596231,
        -0.3143706941,  -0.2506470371,   -0.01775839662, 0.04706115246,  -0.1497028259,
        -0.1890734252,  -0.0009678214764},
       {0.2944192792, 0.06992435462, 0.05656581234, 0.01402271317, 0.3290352419, 0.6564444911,
        -0.2665727269, -0.01060600966, -0.1022532773, 0.08398887352, -0.04843700407,
        -0.004952463268, 0.2151714869, 0.07897377816, 0.06063707347, 0.01049169153}});
}

// y = [10 * 1 + 1 * 2, …] of x = [1, 2, 3, 4].
TEST(StencilGradient, ByHand) {
  const TestTensor x = f64({4}, {1, 2, 3, 4}), weights = f64({2}, {10, 1}),
                   gradient = f64({3}, {1, 2, -1});
  expect_results(run_reference_all("stencil_gradient", {gradient, x, weights}),
                 {{10, 21, -8, -1}, {2, 4}});
  expect_results(run_reference_all("stencil_gradient", {gradient, x, weights}, {{"reduce", "max"}}),
                 {{10, 20, -10, 0}, {2, 0}});
  // (10 a)(b): slopes 10 b and 10 a, and for the weights a b and 10 a b.
  expect_results(
      run_reference_all("stencil_gradient", {gradient, x, weights}, {{"reduce", "product"}}),
      {{20, 10 + 60, 40 - 40, -30}, {2, 20}});
}

TEST(LinearAttentionGradient, OfAGatedDelta) {
  expect_results(
      run_reference_all("linear_attention_gradient",
                        {f64({1, 2, 2}, {0.5, -1, 2, 0.3}), f64({1, 2, 2}, {0.4, 0.2, -0.3, 0.5}),
                         f64({1, 2, 1}, {1.5, -0.7}), f64({1, 1, 2, 1}, {0.6, -0.9}),
                         f64({1, 2, 1}, {-0.2, -0.7}), f64({1, 2, 1}, {0.8, 0.4}),
                         f64({1, 2, 1}, {1, -2}), f64({1, 1, 2, 1}, {0.3, 0.1})},
                        {{"query_heads", 1}, {"heads", 1}, {"scale", 0.5}}),
      {{0.4777594107, -0.2523587465, -0.5263766091, 0.3371019644},
       {-0.521454092, -0.9526971585, 0.2161692512, 0.07569085741},
       {-0.2847300951, 0.164},
       {-0.3732355919, -0.4773945635},
       {0.205713752, -0.7126198425},
       {-0.516385132, -0.1772566833}});
}

// One unit and two steps: hardsigmoid gates, softsign candidate, elu of the cell, f = 1 - i.
TEST(RecurrentGradients, OfOtherActivations) {
  expect_results(
      run_reference_all("lstm_gradient",
                        {f64({2, 1, 1}, {0.9, -0.4}), f64({1, 4, 1}, {0.5, -0.3, 0.8, 0.7}),
                         f64({1, 4, 1}, {0.2, 0.4, -0.1, 0.6}), std::nullopt, std::nullopt,
                         std::nullopt, std::nullopt, std::nullopt, f64({2, 1, 1, 1}, {1, 2})},
                        {{"hidden_size", 1},
                         {"input_forget", true},
                         {"activations", "hardsigmoid,softsign,elu"}}),
      {{0.1973147103, 0.1846210065},
       {0.1112627336, 0.04255988683, 0, 0.0869591942},
       {-0.008825492897, 0.001580359617, 0, 0.03380518028}});
}

std::vector<double> eig_gradient(const Values& x, const std::vector<std::complex<double>>& dw) {
  TestTensor gradient(DType::kC64, {2});
  for (int64_t i = 0; i < 2; ++i) gradient.put({i}, dw[static_cast<size_t>(i)]);
  return run_reference("eig_gradient", {f64({2, 2}, x), gradient}).values();
}

TEST(EigGradient, OfValuesAndVectors) {
  const auto near = [](const Values& a, const Values& b) {
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
  };
  // Real eigenvalues, the smaller one first; then a pair, the one below the axis first.
  near(eig_gradient({2, 1, 0.5, -1}, {-1.2, 0.3}),
       {0.2284005253, 0.2261335084, 0.4522670169, -1.128400525});
  near(eig_gradient({1, -2, 1.5, 0.5}, {{0.3, 0.5}, {-1.2, 0.7}}),
       {-0.4645864991, -0.0875189949, 0.1166919932, -0.4354135009});
  TestTensor dv(DType::kC64, {2, 2}, {1, 2, -0.5, 0.25});
  near(run_reference("eig_gradient", {f64({2, 2}, {2, 1, 0.5, -1}), std::nullopt, dv}).values(),
       {0.07268871844, -0.2194106072, 0.002688903713, -0.07268871844});
  const std::string error = error_of([&] {
    run_reference("eig_gradient", {f64({2, 2}, {1, 0, 0, 1}), std::nullopt, dv});
  });
  EXPECT_NE(error.find("equal eigenvalues"), std::string::npos) << error;
}

}  // namespace
}  // namespace anymps::testing
