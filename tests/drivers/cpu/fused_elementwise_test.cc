// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/run_cpu.h"

namespace anymps::testing {
namespace {

void expect_program(const char* program, DType dtype, TestInputs inputs, double tolerance) {
  SCOPED_TRACE(program);
  expect_as_reference("fused_elementwise", std::move(inputs),
                      {{"program", program}, {"dtype", dtype}}, tolerance);
}

TEST(CpuFusedElementwise, Chains) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    // A last place of the dtype may move when a step's rounding differs.
    const double tolerance = dtype == DType::kBF16 ? 2e-2 : dtype == DType::kF16 ? 2e-3 : 1e-6;
    for (const Shape& shape :
         {Shape{}, Shape{5}, Shape{3, 7, 40}, Shape{700, 16}, Shape{2, 3000}}) {
      const Shape last = shape.empty() ? Shape{} : Shape{shape[shape.size() - 1]};
      const auto x = [&](int seed) {
        return TestTensor(dtype, shape).fill(static_cast<uint64_t>(seed));
      };
      const TestTensor row = TestTensor(dtype, last).fill(9), one = TestTensor(dtype, {}).fill(10);
      expect_program("t0=mul(x0,x1); t1=add(t0,0.5); y=relu(t1)", dtype, {x(1), x(2)}, tolerance);
      expect_program("t0=add(x0,x1); t1=sigmoid(t0); y=mul(t0,t1)", dtype, {x(1), row}, tolerance);
      expect_program("t0=mul(x0,x1); t1=exp(t0); t2=sub(t1,x2); y=tanh(t2)", dtype,
                     {x(1), one, row}, tolerance);
      expect_program("t0=pow(x0,2); t1=pow(x0,3); t2=add(t0,t1); y=leaky_relu(t2;alpha=0.1)", dtype,
                     {x(3)}, tolerance);
      expect_program("t0=less(x0,x1); y=where(t0,x1,x0)", dtype, {x(1), x(2)}, 0);
      expect_program("y=clamp(x0,_,1)", dtype, {x(1)}, 0);
    }
  }
}

TEST(CpuFusedElementwise, MixedDtypes) {
  const TestTensor h = TestTensor(DType::kF16, {50}).fill(1),
                   f = TestTensor(DType::kF32, {50}).fill(2),
                   i = TestTensor(DType::kI32, {50}).fill(3, -9, 9);
  expect_program("t0=cast(x0;dtype=f32); t1=mul(t0,x1); y=cast(t1;dtype=f16)", DType::kF16, {h, f},
                 1e-3);
  expect_program("t0=cast(x0;dtype=f16); y=cast(t0;dtype=f32)", DType::kF32, {f}, 0);
  expect_program("t0=cast(x0;dtype=f32); t1=mul(t0,x1); y=cast(t1;dtype=i32)", DType::kI32, {i, f},
                 0);
  expect_program("t0=greater(x0,0); t1=less(x1,0.5); y=logical_and(t0,t1)", DType::kBool, {i, f},
                 0);
}

TEST(CpuFusedElementwise, StridedInputs) {
  const TestTensor a = TestTensor(DType::kF32, {40, 30}).fill(1),
                   b = TestTensor(DType::kF32, {40, 30}).fill(2);
  expect_program("t0=mul(x0,x1); t1=exp(t0); y=sub(t1,x0)", DType::kF32,
                 {a.scrambled(), b.scrambled()}, 1e-6);
  const TestTensor wide = TestTensor(DType::kF32, {60, 700}).fill(1);
  expect_program("t0=mul(x0,x1); t1=exp(t0); y=sub(t1,x0)", DType::kF32,
                 {wide, wide.with_strides({1, 60})}, 1e-6);
}

TEST(CpuFusedElementwise, LongProgramsKeepTemporariesApart) {
  std::string program;
  for (int i = 0; i < 30; ++i)
    program += fmt::format("t{}=add({},x{}); ", i, i < 4 ? "x0" : fmt::format("t{}", i - 4), i % 2);
  program += "t30=add(t29,t28); t31=add(t27,t26); y=add(t30,t31)";
  const TestTensor a = TestTensor(DType::kF32, {5000}).fill(1),
                   b = TestTensor(DType::kF32, {5000}).fill(2);
  expect_program(program.c_str(), DType::kF32, {a, b}, 1e-5);
}

TEST(CpuFusedElementwise, RefusesWhatIsTooLong) {
  std::string program = "t0=add(x0,1)";
  for (int i = 1; i < 100; ++i) program += fmt::format("; t{}=exp(t{})", i, i - 1);
  program += "; y=abs(t99)";
  const Prepared prepared = prepare_cpu("fused_elementwise", {TestTensor(DType::kF32, {5})},
                                        {{"program", program}, {"dtype", DType::kF32}});
  EXPECT_FALSE(prepared.kernel);
  EXPECT_NE(prepared.refusals.find("too long"), std::string::npos);
}

}  // namespace
}  // namespace anymps::testing
