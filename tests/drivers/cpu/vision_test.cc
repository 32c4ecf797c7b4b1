// SPDX-License-Identifier: Apache-2.0
// That the kernels of sampling, pooling, Fourier transforms and linear algebra take what they are
// made for, and sizes that the samples of the records do not have.
#include "drivers/cpu/against_reference.h"

namespace anymps::testing {
namespace {

TestTensor wave(Shape shape, DType dtype = DType::kF32, uint64_t seed = 5) {
  return TestTensor(dtype, std::move(shape)).fill(seed, -1, 1);
}

TEST(CpuVision, Resize) {
  const NamedAttrs sizes{{"sizes", Ints{2, 3, 40, 17}}};
  const auto with = [&](const char* mode) {
    NamedAttrs attrs = sizes;
    attrs.emplace_back("mode", mode);
    return attrs;
  };
  expect_same({"resize", "nearest", {wave({2, 3, 20, 30})}, with("nearest")}, 0);
  expect_same({"resize", "nearest", {spread(wave({2, 3, 20, 30}, DType::kI16))}, with("nearest")},
              0);
  expect_same({"resize", "separable", {wave({2, 3, 20, 30})}, with("linear")}, 1e-5);
  expect_same({"resize", "separable", {wave({2, 3, 20, 30}, DType::kF64)}, with("cubic")}, 1e-12);
  expect_same({"resize", "separable", {wave({2, 3, 20, 30}, DType::kF16)}, with("linear")}, 2e-3);
}

TEST(CpuVision, Sampling) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    expect_same({"grid_sample",
                 "corners",
                 {spread(wave({2, 5, 9, 8})), wave({2, 7, 6, 2}, DType::kF32, 8)},
                 {{"mode", mode}}},
                1e-5);
  const TestTensor rois(DType::kF32, {2, 4}, {1, 2, 9, 14, 0, 0, 20, 20});
  for (const char* mode : {"avg", "max"})
    expect_same({"roi_align",
                 "corners",
                 {wave({2, 5, 16, 18}), rois, TestTensor(DType::kI64, {2}, {1, 0})},
                 {{"output_height", 3}, {"output_width", 4}, {"mode", mode}}},
                1e-5);
  expect_same({"deform_conv",
               "columns",
               {wave({2, 4, 9, 10}), wave({6, 2, 3, 3}, DType::kF32, 6),
                wave({2, 36, 7, 8}, DType::kF32, 7), wave({6}), wave({2, 18, 7, 8})},
               {{"groups", 2}, {"offset_groups", 2}}},
              1e-5);
}

TEST(CpuVision, Pooling) {
  const NamedAttrs window{
      {"kernel", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}};
  expect_same({"max_pool", "plain", {wave({2, 3, 11, 12})}, window, 2}, 0);
  NamedAttrs norm = window;
  norm.emplace_back("p", 3);
  expect_same({"lp_pool", "plain", {wave({2, 3, 11, 12})}, norm}, 1e-6);
  for (const char* op : {"max_pool_gradient", "avg_pool_gradient", "lp_pool_gradient"})
    expect_same({op, "plain", {wave({2, 3, 6, 6}), wave({2, 3, 11, 12})}, window}, 1e-5);
  NamedAttrs counted = window;
  counted.emplace_back("count_include_pad", true);
  counted.emplace_back("ceil_mode", true);
  expect_same({"avg_pool_gradient", "plain", {wave({2, 3, 6, 6}), wave({2, 3, 11, 12})}, counted},
              1e-5);
}

TEST(CpuVision, FourierTransformsOfManyLengths) {
  for (const int64_t n : {1, 2, 3, 16, 31, 32, 37, 100, 360, 512, 961, 1009})
    for (const bool inverse : {false, true})
      expect_same({"fft", "stockham", {wave({3, n}, DType::kC64)}, {{"inverse", inverse}}}, 2e-4);
  expect_same({"dft", "stockham", {wave({2, 1021, 1}, DType::kF64)}, {{"onesided", true}}}, 1e-9);
  expect_same(
      {"stft", "stockham", {wave({2, 700, 1}), TestTensor(DType::kI64, {}, {100}), wave({257})}},
      1e-4);
}

TEST(CpuVision, Einsum) {
  expect_same({"einsum",
               "matmul",
               {spread(wave({2, 7, 3, 16})), wave({2, 9, 3, 16}, DType::kF32, 6)},
               {{"equation", "bqhd,bkhd->bhqk"}}},
              1e-5);
  expect_same({"einsum", "matmul", {wave({4, 5, 6})}, {{"equation", "ijk->ki"}}}, 1e-5);
}

TEST(CpuVision, LinearAlgebraOfViews) {
  expect_same({"inverse", "lapack", {spread(wave({3, 12, 12}, DType::kF64))}}, 1e-8);
  expect_same({"det", "lapack", {spread(wave({3, 12, 12}, DType::kF64))}}, 1e-8);
  expect_same({"qr", "lapack", {spread(wave({12, 7}, DType::kF64))}, {}, 2}, 1e-9);
  expect_same({"svd", "lapack", {spread(wave({7, 12}, DType::kF64))}, {}, 3}, 1e-9);
  expect_same({"eigh", "lapack", {wave({9, 9}, DType::kF64)}, {{"upper", true}}, 2}, 1e-9);
  expect_same({"eig", "lapack", {wave({8, 8}, DType::kF64)}, {}, 2}, 1e-5);
}

// What is filled up is not unique, but it is orthogonal, and the product is x.
TEST(CpuVision, FullFactors) {
  const TestTensor x = wave({6, 3}, DType::kF64);
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

}  // namespace
}  // namespace anymps::testing
