// SPDX-License-Identifier: Apache-2.0
// Kernels of einsum, linear algebra and tables against the reference: views, and sizes that the
// samples of the records do not have.
#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TestTensor matrices(Shape shape, DType dtype = DType::kF32, uint64_t seed = 5) {
  return TestTensor(dtype, std::move(shape)).fill(seed, -1, 1);
}

TEST(CpuEinsum, AsProducts) {
  expect_same({"einsum",
               "matmul",
               {spread(matrices({2, 7, 3, 16})), matrices({2, 9, 3, 16}, DType::kF32, 6)},
               {{"equation", "bqhd,bkhd->bhqk"}}},
              1e-5);
  expect_same({"einsum", "matmul", {matrices({4, 5, 6})}, {{"equation", "ijk->ki"}}}, 1e-5);
}

TEST(CpuLinearAlgebra, Views) {
  expect_same({"inverse", "lapack", {spread(matrices({3, 12, 12}, DType::kF64))}}, 1e-8);
  expect_same({"det", "lapack", {spread(matrices({3, 12, 12}, DType::kF64))}}, 1e-8);
  expect_same({"qr", "lapack", {spread(matrices({12, 7}, DType::kF64))}, {}, 2}, 1e-9);
  expect_same({"svd", "lapack", {spread(matrices({7, 12}, DType::kF64))}, {}, 3}, 1e-9);
  expect_same({"eigh", "lapack", {matrices({9, 9}, DType::kF64)}, {{"upper", true}}, 2}, 1e-9);
  expect_same({"eig", "lapack", {matrices({8, 8}, DType::kF64)}, {}, 2}, 1e-5);
}

// What is filled up is not unique, but it is orthogonal, and the product is x.
TEST(CpuLinearAlgebra, FullFactors) {
  const TestTensor x = matrices({6, 3}, DType::kF64);
  KernelCase qr{"qr", "lapack", {x}, {{"mode", "complete"}}, 2};
  KernelCase svd{"svd", "lapack", {x}, {{"full_matrices", true}}, 3};
  for (KernelCase* test : {&qr, &svd}) {
    const KernelResult result = run_cpu_kernel(*test);
    ASSERT_TRUE(result.kernel) << result.why;
    const TestTensor& q = result.outputs[0];
    ASSERT_EQ(q.shape(), (Shape{6, 6}));
    const TestTensor one = run_reference("matmul", {q, q}, {{"transpose_a", true}});
    for_each_index(one.shape(), [&](const Shape& at) {
      EXPECT_NEAR(one.get(at).real(), at[0] == at[1], 1e-12);
    });
    for_each_index(x.shape(), [&](const Shape& at) {
      std::complex<double> sum = 0;
      for (int64_t k = 0; k < (test == &qr ? 6 : 3); ++k)
        sum += q.get({at[0], k}) *
               (test == &qr ? result.outputs[1].get({k, at[1]})
                            : result.outputs[1].get({k}) * result.outputs[2].get({k, at[1]}));
      EXPECT_NEAR(sum.real(), x.get(at).real(), 1e-12);
    });
  }
}

TEST(CpuDequantizeLut, TablesOfGroups) {
  const TestTensor x = TestTensor(DType::kU8, {60, 80}).fill(1, 0, 15);
  expect_as_reference("dequantize_lut", {x, random_f32({16})});
  expect_as_reference("dequantize_lut", {x.scrambled(), random_f32({6, 2, 16})});
  expect_as_reference("dequantize_lut", {x, random_f32({6, 2, 16, 3})}, {{"axis", 1}});
  TestInputs inputs = {TestTensor(DType::kU8, {2}, {0, 4}), random_f32({4})};
  const Prepared prepared = prepare_cpu("dequantize_lut", inputs);
  EXPECT_NE(error_of([&] { run(prepared, inputs); }), "");
}

// Packed panels of 16 to 64 columns, blocks of 128 rows, up to 16 rows of x in registers.
TEST(CpuWeightOnly, PackedWeights) {
  struct Form {
    DType w;
    int64_t bits, depth, group;
    bool zeros;
  };
  const std::vector<Form> forms{{DType::kI8, 8, 33, 0, false},  {DType::kU8, 8, 150, 50, false},
                                {DType::kI8, 8, 130, 65, true}, {DType::kU8, 4, 192, 32, false},
                                {DType::kI8, 4, 300, 0, false}, {DType::kU8, 4, 256, 64, true},
                                {DType::kU8, 8, 300, 300, true}};
  if (!cpu::gemm_is_here()) GTEST_SKIP() << "no AVX2";
  for (const Form& form : forms)
    for (const int64_t columns : {1, 9, 16, 36, 100, 129})
      for (const int64_t rows : {1, 2, 3, 7, 16, 17, 61}) {
        SCOPED_TRACE(fmt::format("{} bits, {} x {} x {}", form.bits, rows, form.depth, columns));
        const int64_t groups = form.group == 0 ? 0 : form.depth / form.group;
        const Shape numbers = groups == 0 ? Shape{columns} : Shape{groups, columns};
        TestInputs inputs{
            matrices({rows, form.depth}),
            TestTensor(form.w, {columns, form.bits == 4 ? form.depth / 2 : form.depth})
                .fill(7, form.w == DType::kI8 ? -128 : 0, form.w == DType::kI8 ? 127 : 255),
            matrices(numbers, DType::kF32, 8), std::nullopt};
        if (form.zeros) inputs[3] = matrices(numbers, DType::kF32, 9);
        // Sums of up to 300 products of up to 255.
        expect_same({"weight_only_matmul",
                     "packed",
                     inputs,
                     {{"bits", form.bits}, {"group", form.group}},
                     1,
                     {1}},
                    2e-3);
      }
}

TEST(CpuWeightOnly, WhatIsNotPacked) {
  KernelCase test{"weight_only_matmul",
                  "packed",
                  {matrices({2, 8}), matrices({4, 8}, DType::kI8), matrices({4})}};
  EXPECT_FALSE(run_cpu_kernel(test).kernel);
  test.constant = {1};
  test.inputs[0] = matrices({0, 8});
  EXPECT_FALSE(run_cpu_kernel(test).kernel);
}

}  // namespace
}  // namespace anymps::testing
