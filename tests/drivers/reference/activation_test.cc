// SPDX-License-Identifier: Apache-2.0
// Reference activations and softmax against values from tables.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

struct ActivationCase {
  const char* op;
  NamedAttrs attrs;
  std::vector<double> y;  // at -2, 0, 1, 8
};

TEST(ReferenceActivation, Values) {
  const std::vector<ActivationCase> cases = {
      {"relu", {}, {0, 0, 1, 8}},
      {"leaky_relu", {}, {-0.02, 0, 1, 8}},
      {"leaky_relu", {{"alpha", 0.5}}, {-1, 0, 1, 8}},
      {"elu", {}, {-0.8646647168, 0, 1, 8}},
      {"elu", {{"alpha", 2}}, {-1.729329434, 0, 1, 8}},
      {"selu", {}, {-1.520166468, 0, 1.050700987, 8.405607896}},
      {"celu", {{"alpha", 2}}, {-1.264241118, 0, 1, 8}},
      {"gelu", {}, {-0.0455002639, 0, 0.8413447461, 8}},
      {"gelu", {{"approximate", "tanh"}}, {-0.0454023059, 0, 0.8411919906, 8}},
      {"silu", {}, {-0.2384058440, 0, 0.7310585786, 7.997317199}},
      {"mish", {}, {-0.2525014962, 0, 0.8650983883, 7.999998201}},
      {"softplus", {}, {0.1269280110, 0.6931471806, 1.313261688, 8.000335406}},
      {"softsign", {}, {-0.6666666667, 0, 0.5, 0.8888888889}},
      {"sigmoid", {}, {0.1192029220, 0.5, 0.7310585786, 0.9996646499}},
      {"hard_sigmoid", {}, {0.1, 0.5, 0.7, 1}},
      {"hard_sigmoid", {{"alpha", 0.5}, {"beta", 0.25}}, {0, 0.25, 0.75, 1}},
      {"hard_swish", {}, {-0.3333333333, 0, 0.6666666667, 8}},
      {"thresholded_relu", {}, {0, 0, 0, 8}},
      {"thresholded_relu", {{"alpha", 0.5}}, {0, 0, 1, 8}},
  };
  for (const ActivationCase& c : cases)
    EXPECT_TRUE(same(run_reference(c.op, {f32s({-2, 0, 1, 8})}, c.attrs), f32s(c.y), 1e-6)) << c.op;
}

TEST(ReferenceActivation, ExtremesDoNotOverflow) {
  EXPECT_TRUE(same(run_reference("softplus", {f32s({1000, -1000})}), f32s({1000, 0})));
  EXPECT_TRUE(same(run_reference("sigmoid", {f32s({1000, -1000})}), f32s({1, 0})));
  EXPECT_TRUE(same(run_reference("mish", {f32s({1000, -1000})}), f32s({1000, 0})));
  EXPECT_TRUE(same(run_reference("silu", {f32s({1000, -1000})}), f32s({1000, 0})));
}

TEST(ReferenceActivation, NanStaysNan) {
  for (const char* op :
       {"relu", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign",
        "sigmoid", "hard_sigmoid", "hard_swish", "thresholded_relu"})
    EXPECT_TRUE(same(run_reference(op, {f32s({kNan})}), f32s({kNan}))) << op;
}

TEST(ReferenceActivation, PreluBroadcastsItsSlope) {
  const TestTensor x(DType::kF32, {2, 2}, {-1, 2, -3, -4});
  const TestTensor slope(DType::kF32, {2, 1}, {0.5, 0.25});
  EXPECT_TRUE(same(run_reference("prelu", {x, slope}),
                   TestTensor(DType::kF32, {2, 2}, {-0.5, 2, -0.75, -1})));
}

TEST(ReferenceActivation, ReluOfIntegers) {
  EXPECT_TRUE(same(run_reference("relu", {TestTensor::of<int8_t>({3}, {-128, 0, 127})}),
                   TestTensor::of<int8_t>({3}, {0, 0, 127})));
}

TEST(ReferenceSoftmax, AlongEachAxis) {
  // e^0 : e^1 = 0.2689414214 : 0.7310585786
  const TestTensor x(DType::kF32, {2, 2}, {0, 1, 1, 1});
  EXPECT_TRUE(same(run_reference("softmax", {x}),
                   TestTensor(DType::kF32, {2, 2}, {0.2689414214, 0.7310585786, 0.5, 0.5}), 1e-7));
  EXPECT_TRUE(same(run_reference("softmax", {x.scrambled()}, {{"axis", 0}}),
                   TestTensor(DType::kF32, {2, 2}, {0.2689414214, 0.5, 0.7310585786, 0.5}), 1e-7));
  EXPECT_TRUE(same(
      run_reference("log_softmax", {x}),
      TestTensor(DType::kF32, {2, 2}, {-1.313261688, -0.3132616875, -0.6931471806, -0.6931471806}),
      1e-6));
}

TEST(ReferenceSoftmax, LargeInputsAndInfinities) {
  EXPECT_TRUE(same(run_reference("softmax", {f32s({1000, 1000})}), f32s({0.5, 0.5})));
  EXPECT_TRUE(same(run_reference("softmax", {f32s({0, -kInf})}), f32s({1, 0})));
  EXPECT_TRUE(same(run_reference("softmax", {f32s({-kInf, -kInf})}), f32s({kNan, kNan})));
  EXPECT_TRUE(same(run_reference("softmax", {f32s({1, kNan})}), f32s({kNan, kNan})));
  EXPECT_TRUE(same(run_reference("log_softmax", {f32s({0, -2000})}), f32s({0, -2000})));
}

TEST(ReferenceSoftmax, EmptyAndBadAxes) {
  EXPECT_EQ(run_reference("softmax", {TestTensor(DType::kF32, {2, 0})}).shape(), (Shape{2, 0}));
  EXPECT_EQ(error_of([] {
              run_reference("softmax", {TestTensor(DType::kF32, {2, 3})}, {{"axis", 2}});
            }),
            "[softmax] axis 2 is out of range for rank 2");
}

// Gradients: numbers by hand and from NumPy.
const TestTensor kDy(DType::kF64, {4}, {1, 2, 3, 4}), kPoints(DType::kF64, {4}, {-2, 0, 0.5, 3});

// Computed with 30 digits.
TEST(ReferenceActivationGradient, OfTheirOwnOps) {
  struct Row {
    const char* op;
    NamedAttrs attrs;
    std::vector<double> expected;
  };
  const Row rows[] = {
      {"gelu_gradient", {}, {-0.085231801078197, 1, 2.6024853739685, 4.0477825888167}},
      {"gelu_gradient",
       {{"approximate", "tanh"}},
       {-0.086099256623618, 1, 2.6021097106039, 4.0463366665239}},
      {"silu_gradient", {}, {-0.090784248784895, 1, 2.219883561908, 4.3524164240607}},
      {"mish_gradient", {}, {-0.10835509242039, 1.2, 2.6592731260732, 4.0844276437178}},
      {"softplus_gradient", {}, {0.11920292202212, 1, 1.8673779936056, 3.8102965072897}},
      {"log_sigmoid_gradient", {}, {0.88079707797788, 1, 1.1326220063944, 0.18970349271027}},
      {"hard_swish_gradient", {}, {-1.0 / 6, 1, 2, 4}},
      {"hard_sigmoid_gradient", {}, {0.2, 0.4, 0.6, 0}},
      {"elu_gradient", {{"alpha", 2.0}}, {0.27067056647323, 4, 3, 4}},
      {"hardtanh_gradient", {{"min", -2.0}, {"max", 3.0}}, {0, 2, 3, 0}},
      {"threshold_gradient", {{"alpha", 0.5}}, {0, 0, 0, 4}},
      {"sigmoid_result_gradient", {}, {-6, 0, 0.75, -24}},
      {"tanh_result_gradient", {}, {-3, 2, 2.25, -32}},
  };
  for (const Row& row : rows)
    EXPECT_TRUE(same(run_reference(row.op, {kDy, kPoints}, row.attrs),
                     TestTensor(DType::kF64, {4}, row.expected), 1e-9))
        << row.op;
}

TEST(ReferenceActivationGradient, Elementwise) {
  EXPECT_EQ(run_reference("relu_gradient", {kDy, kPoints}).values(), (Row{0, 0, 3, 4}));
  EXPECT_EQ(
      run_reference("leaky_relu_gradient", {kDy, kPoints, TestTensor(DType::kF64, {}, {0.25})})
          .values(),
      (Row{0.25, 2, 3, 4}));
  EXPECT_TRUE(same(run_reference("sigmoid_gradient", {kDy, kPoints}),
                   TestTensor(DType::kF64, {4},
                              {0.1049935854035065, 0.5, 0.7050111366047835, 0.180706638923648}),
                   1e-12));
}

TEST(ReferenceActivationGradient, Softmax) {
  EXPECT_TRUE(same(run_reference("softmax_gradient", {kDy, kPoints}),
                   TestTensor(DType::kF64, {4},
                              {-0.016703891607385155, -0.07969981044806299, -0.0593104868857644,
                               0.1557141889412123}),
                   1e-12));
}

}  // namespace
}  // namespace anymps::testing
