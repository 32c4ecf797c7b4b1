// SPDX-License-Identifier: Apache-2.0
// Fused programs on the reference driver: by hand, and bit for bit as the separate ops.
#include "support/program.h"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Steps = std::vector<ProgramStep>;

std::vector<TestTensor> fused_all(const Steps& steps, TestInputs inputs,
                                  const std::vector<size_t>& outputs, const Ints& shape = {}) {
  return run_reference_all("fused_elementwise", std::move(inputs),
                           {{"program", program(steps, outputs)}, {"shape", shape}},
                           outputs.size());
}
TestTensor fused(const Steps& steps, TestInputs inputs) {
  return fused_all(steps, std::move(inputs), {steps.size() - 1})[0];
}

TEST(ReferenceFused, ByHand) {
  const TestTensor a(DType::kF32, {2, 2}, {1, -2, 3, -4}), row(DType::kF32, {2}, {10, 100});
  EXPECT_TRUE(
      same(fused({{"mul", {x(0), x(1)}}, {"add", {t(0), number(0.5)}}, {"relu", {t(1)}}}, {a, row}),
           TestTensor(DType::kF32, {2, 2}, {10.5, 0, 30.5, 0})));
  EXPECT_TRUE(same(fused({{"greater", {x(0), number(0)}},
                          {"where", {t(0), number(1, DType::kI8), number(-1, DType::kI8)}}},
                         {a.scrambled()}),
                   TestTensor(DType::kI8, {2, 2}, {1, -1, 1, -1})));
  EXPECT_TRUE(
      same(fused({{"clamp", {x(0), absent(), x(1)}}}, {a, TestTensor(DType::kF32, {}, {2})}),
           TestTensor(DType::kF32, {2, 2}, {1, -2, 2, -4})));
  EXPECT_TRUE(same(fused({{"cast", {x(0)}, {{"dtype", DType::kI32}}}, {"add", {t(0), x(1)}}},
                         {a, TestTensor(DType::kI32, {1}, {7})}),
                   TestTensor(DType::kI32, {2, 2}, {8, 5, 10, 3})));
}

TEST(ReferenceFused, SeveralOutputsAndParameters) {
  const TestTensor a(DType::kF32, {2, 2}, {1, -2, 3, -4});
  const TestTensor numbers = f64({3}, {0.25, 10, -1});
  const auto results = fused_all({{"mul", {x(0), parameter(1, 1)}},
                                  {"leaky_relu", {x(0)}, {{"alpha", parameter(1, 0)}}},
                                  {"cast", {t(0)}, {{"dtype", DType::kI8}}},
                                  {"less", {t(1), parameter(1, 2)}}},
                                 {a, numbers}, {2, 1, 3, 2});
  EXPECT_TRUE(same(results[0], TestTensor(DType::kI8, {2, 2}, {10, -20, 30, -40})));
  EXPECT_TRUE(same(results[1], TestTensor(DType::kF32, {2, 2}, {1, -0.5, 3, -1})));
  EXPECT_TRUE(same(results[2], TestTensor(DType::kBool, {2, 2}, {0, 0, 0, 0})));
  EXPECT_TRUE(same(results[3], results[0]));
  // A parameter of an integer is exact, and wraps as a cast does.
  const TestTensor whole = indices({2}, {(int64_t{1} << 62) + 1, 300});
  EXPECT_EQ(fused({{"identity", {parameter(0, 0, DType::kI64)}}}, {whole}).data<int64_t>()[0],
            (int64_t{1} << 62) + 1);
  EXPECT_TRUE(
      same(fused_all({{"identity", {parameter(0, 1, DType::kU8)}}}, {whole}, {0}, {2, 3})[0],
           TestTensor(DType::kU8, {2, 3}, {44, 44, 44, 44, 44, 44})));
}

TEST(ReferenceFused, RoundsEachStepToItsDtype) {
  // 2048 + 1 is 2048 in f16, so the difference is 0 and not 1.
  const TestTensor h(DType::kF16, {1}, {2048});
  EXPECT_TRUE(same(fused({{"add", {x(0), number(1)}}, {"sub", {t(0), x(0)}}}, {h}),
                   TestTensor(DType::kF16, {1}, {0})));
}

TEST(ReferenceFused, GivesWhatTheSeparateOpsGive) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    const TestTensor a = TestTensor(dtype, {3, 5}).fill(1), b = TestTensor(dtype, {5}).fill(2);
    const TestTensor c = TestTensor(dtype, {3, 1}).fill(3).scrambled();
    TestTensor y = run_reference("mul", {a, b});
    y = run_reference("exp", {y});
    y = run_reference("div", {y, c});
    y = run_reference("gelu", {y}, {{"approximate", "tanh"}});
    EXPECT_TRUE(same(fused({{"mul", {x(0), x(1)}},
                            {"exp", {t(0)}},
                            {"div", {t(1), x(2)}},
                            {"gelu", {t(2)}, {{"approximate", "tanh"}}}},
                           {a, b, c}),
                     y))
        << name(dtype);
  }
}

TEST(ReferenceFused, EmptyAndErrors) {
  const Steps twice = {{"neg", {x(0)}}, {"neg", {t(0)}}};
  EXPECT_EQ(fused(twice, {TestTensor(DType::kF32, {0, 2})}).shape(), (Shape{0, 2}));
  const TestTensor one(DType::kI32, {1}, {1});
  EXPECT_EQ(error_of([&] {
              fused({{"div", {x(0), number(0)}}}, {one});
            }),
            "[div] integer division by zero");
  EXPECT_EQ(error_of([&] {
              fused(twice, {one, one});
            }),
            "[fused_elementwise] the program reads 1 inputs, 2 given");
  EXPECT_EQ(error_of([&] {
              run_reference_all("fused_elementwise", {one}, {{"program", program(twice)}}, 2);
            }),
            "[fused_elementwise] the program has 1 outputs, 2 asked for");
  EXPECT_EQ(error_of([&] {
              fused({{"mul", {x(0), parameter(1, 2)}}}, {one, f64({2}, {1, 2})});
            }),
            "[fused_elementwise] x1 must be a vector of at least 3 parameters, its shape is [2]");
  EXPECT_EQ(error_of([&] { fused_all(twice, {one}, {1}, {-1}); }),
            "[fused_elementwise] attribute 'shape' has the extent -1");
}

}  // namespace
}  // namespace anymps::testing
