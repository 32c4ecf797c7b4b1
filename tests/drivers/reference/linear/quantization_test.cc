// SPDX-License-Identifier: Apache-2.0
// Quantization with the numbers of the ONNX standard's examples and of Apple's formulas.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Numbers = std::vector<double>;

TEST(Quantize, Tensor) {
  const TestTensor x(DType::kF32, {6}, {0, 2, 3, 1000, -254, -1000});
  const auto y = run_reference(
      "quantize", {x, TestTensor(DType::kF32, {}, {2}), TestTensor(DType::kU8, {}, {128})},
      {{"dtype", DType::kU8}});
  EXPECT_EQ(y.values(), (Numbers{128, 129, 130, 255, 1, 0}));
}

TEST(Quantize, RoundsHalvesToEvenAndClamps) {
  const TestTensor x(DType::kF32, {7}, {0.5, 1.5, -2.5, 200, -200, NAN, INFINITY});
  EXPECT_EQ(run_reference("quantize", {x}, {{"dtype", DType::kI8}}).values(),
            (Numbers{0, 2, -2, 127, -128, 0, 127}));
  EXPECT_EQ(run_reference("quantize", {x}, {{"dtype", DType::kI4}}).values(),
            (Numbers{0, 2, -2, 7, -8, 0, 7}));
}

TEST(Quantize, Axis) {
  const TestTensor x(DType::kF32, {1, 3, 2}, {-162, 10, -100, 232, -20, -50});
  const auto y = run_reference(
      "quantize",
      {x, TestTensor(DType::kF32, {3}, {2, 4, 5}), TestTensor(DType::kU8, {3}, {84, 24, 196})},
      {{"dtype", DType::kU8}});
  EXPECT_EQ(y.values(), (Numbers{3, 89, 0, 82, 192, 186}));
}

TEST(Quantize, Blocks) {
  const TestTensor x(DType::kF32, {3, 4}, {6, -8, -10, 5, 1, 8, 4, 5, 0, 20, 10, 4});
  const TestTensor scale(DType::kF32, {3, 2}, {1.5, 2.5, 3, 4.9, 5.1, 6.9});
  const auto y = run_reference("quantize", {x, scale},
                               {{"dtype", DType::kI16}, {"axis", 1}, {"block_size", 2}});
  EXPECT_EQ(y.values(), (Numbers{4, -5, -4, 2, 0, 3, 1, 1, 0, 4, 1, 1}));
}

TEST(Quantize, NarrowFloats) {
  const TestTensor x(DType::kF32, {5}, {0, 1, 2, 100000, 200});
  EXPECT_EQ(
      run_reference("quantize", {x, TestTensor(DType::kF32, {}, {2})}, {{"dtype", DType::kF8E4M3}})
          .values(),
      (Numbers{0, 0.5, 1, 448, 96}));
  EXPECT_EQ(
      run_reference("quantize", {x, TestTensor(DType::kF32, {}, {2})}, {{"dtype", DType::kF8E5M2}})
          .values(),
      (Numbers{0, 0.5, 1, 49152, 96}));
}

TEST(Dequantize, TensorAxisAndBlocks) {
  const TestTensor x(DType::kU8, {4}, {0, 3, 128, 255});
  EXPECT_EQ(run_reference("dequantize",
                          {x, TestTensor(DType::kF32, {}, {2}), TestTensor(DType::kU8, {}, {128})})
                .values(),
            (Numbers{-256, -250, 0, 254}));
  const TestTensor i4(DType::kI4, {2, 4}, {0, 1, 7, -4, -8, 5, 2, 3});
  EXPECT_EQ(run_reference("dequantize", {i4, TestTensor(DType::kF32, {2, 2}, {2, 4, 1, 3})},
                          {{"axis", 1}, {"block_size", 2}})
                .values(),
            (Numbers{0, 2, 28, -16, -8, 5, 6, 9}));
  EXPECT_NE(error_of([&] {
              run_reference("dequantize", {i4, TestTensor(DType::kF32, {3}, {1, 1, 1})});
            }).find("does not fit x [2, 4]"),
            std::string::npos);
}

TEST(DequantizeLut, GroupsAndVectors) {
  const TestTensor x(DType::kU4, {2, 2}, {0, 3, 1, 2});
  const TestTensor groups(DType::kF32, {2, 1, 4}, {10, 11, 12, 13, 20, 21, 22, 23});
  EXPECT_EQ(run_reference("dequantize_lut", {x, groups}).values(), (Numbers{10, 13, 21, 22}));
  // y[r, 2 c + v] = table[0, 0, x[r, c], v]
  const TestTensor vectors(DType::kF32, {1, 1, 4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  EXPECT_TRUE(same(run_reference("dequantize_lut", {x, vectors}, {{"axis", 1}}),
                   TestTensor(DType::kF32, {2, 4}, {0, 1, 30, 31, 10, 11, 20, 21})));
  EXPECT_TRUE(same(run_reference("dequantize_lut", {x, vectors}, {{"axis", 0}}),
                   TestTensor(DType::kF32, {4, 2}, {0, 30, 1, 31, 10, 20, 11, 21})));
  EXPECT_NE(error_of([&] {
              run_reference("dequantize_lut", {x, TestTensor(DType::kF32, {2}, {1, 2})});
            }).find("is 3, the table has 2 entries"),
            std::string::npos);
}

TEST(DynamicQuantize, OnnxExamples) {
  const auto run = [](const Numbers& x) {
    return run_reference_all("dynamic_quantize",
                             {TestTensor(DType::kF32, {static_cast<int64_t>(x.size())}, x)});
  };
  auto y = run({0, 2, -3, -2.5, 1.34, 0.5});
  EXPECT_EQ(y[0].values(), (Numbers{153, 255, 0, 26, 221, 179}));
  EXPECT_NEAR(y[1].values()[0], 0.0196078438, 1e-9);
  EXPECT_EQ(y[2].values(), (Numbers{153}));
  y = run({-1, -2.1, -1.3, -2.5, -3.34, -4});
  EXPECT_EQ(y[0].values(), (Numbers{191, 121, 172, 96, 42, 0}));
  EXPECT_EQ(y[2].values(), (Numbers{255}));
}

TEST(MatmulInteger, OnnxExample) {
  const TestTensor a(DType::kU8, {4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0});
  const TestTensor b(DType::kU8, {3, 2}, {1, 4, 2, 5, 3, 6});
  const TestTensor zero(DType::kU8, {1}, {12});
  EXPECT_EQ(
      run_reference("matmul_integer", {a, b, zero, TestTensor(DType::kU8, {1}, {0})}).values(),
      (Numbers{-38, -83, -44, -98, -50, -113, -56, -128}));
}

TEST(ConvInteger, OnnxExample) {
  const TestTensor x(DType::kU8, {1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  const TestTensor w(DType::kU8, {1, 1, 2, 2}, {1, 1, 1, 1}), zero(DType::kU8, {}, {1});
  EXPECT_EQ(run_reference("conv_integer", {x, w, zero}).values(), (Numbers{12, 16, 24, 28}));
  EXPECT_EQ(
      run_reference("conv_integer", {x, w, zero}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}})
          .values(),
      (Numbers{1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}));
}

TEST(Requantize, RoundsBeforeTheZeroPoint) {
  const TestTensor x(DType::kI32, {5}, {1, 3, 5, 1000, -1000});
  EXPECT_EQ(run_reference("requantize",
                          {x, TestTensor(DType::kF32, {}, {0.5}), TestTensor(DType::kU8, {}, {3})},
                          {{"dtype", DType::kU8}})
                .values(),
            (Numbers{3, 5, 5, 255, 0}));
}

}  // namespace
}  // namespace anymps::testing
