// SPDX-License-Identifier: Apache-2.0
// Fused programs on the reference driver: by hand, and bit for bit as the separate ops.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor fused(const char* program, TestInputs inputs, DType dtype) {
  return run_reference("fused_elementwise", std::move(inputs),
                       {{"program", program}, {"dtype", dtype}});
}

TEST(ReferenceFused, ByHand) {
  const TestTensor x(DType::kF32, {2, 2}, {1, -2, 3, -4}), row(DType::kF32, {2}, {10, 100});
  EXPECT_TRUE(same(fused("t0=mul(x0,x1); t1=add(t0,0.5); y=relu(t1)", {x, row}, DType::kF32),
                   TestTensor(DType::kF32, {2, 2}, {10.5, 0, 30.5, 0})));
  EXPECT_TRUE(same(fused("t0=greater(x0,0); y=where(t0,1,-1)", {x.scrambled()}, DType::kI8),
                   TestTensor(DType::kI8, {2, 2}, {1, -1, 1, -1})));
  EXPECT_TRUE(same(fused("y=clamp(x0,_,x1)", {x, TestTensor(DType::kF32, {}, {2})}, DType::kF32),
                   TestTensor(DType::kF32, {2, 2}, {1, -2, 2, -4})));
  EXPECT_TRUE(same(fused("t0=cast(x0;dtype=i32); y=add(t0,x1)",
                         {x, TestTensor(DType::kI32, {1}, {7})}, DType::kI32),
                   TestTensor(DType::kI32, {2, 2}, {8, 5, 10, 3})));
}

TEST(ReferenceFused, RoundsEachStepToItsDtype) {
  // 2048 + 1 is 2048 in f16, so the difference is 0 and not 1.
  const TestTensor x(DType::kF16, {1}, {2048});
  EXPECT_TRUE(same(fused("t0=add(x0,1); y=sub(t0,x0)", {x}, DType::kF16),
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
    EXPECT_TRUE(same(fused("t0=mul(x0,x1); t1=exp(t0); t2=div(t1,x2); "
                           "y=gelu(t2;approximate=\"tanh\")",
                           {a, b, c}, dtype),
                     y))
        << name(dtype);
  }
}

TEST(ReferenceFused, EmptyAndErrors) {
  EXPECT_EQ(fused("t0=neg(x0); y=neg(t0)", {TestTensor(DType::kF32, {0, 2})}, DType::kF32).shape(),
            (Shape{0, 2}));
  const TestTensor x(DType::kI32, {1}, {1});
  EXPECT_EQ(error_of([&] { fused("y=div(x0,0)", {x}, DType::kI32); }),
            "[div] integer division by zero");
  EXPECT_EQ(error_of([&] {
              fused("y=neg(x0)", {x, x}, DType::kI32);
            }),
            "[fused_elementwise] the program reads 1 inputs, 2 given");
}

}  // namespace
}  // namespace anymps::testing
