// SPDX-License-Identifier: Apache-2.0
// Linear algebra of the CPU driver against the reference: views, matrices that LAPACK factors in
// blocks, and what fails.
#include "drivers/cpu/against_reference.h"

namespace anymps::testing {
namespace {

TestTensor random(Shape shape, DType dtype = DType::kF64, uint64_t seed = 5) {
  return TestTensor(dtype, std::move(shape)).fill(seed, -1, 1);
}
// Diagonals of n, so that a random matrix is far from a singular one.
TestTensor regular(Shape shape, DType dtype = DType::kF64) {
  TestTensor tensor = random(shape, dtype);
  for_each_index(shape, [&](const Shape& at) {
    if (at[at.size() - 1] == at[at.size() - 2])
      tensor.put(at, tensor.get(at) + static_cast<double>(shape.back()));
  });
  return tensor;
}

TEST(CpuLinalg, ViewsAndBlocks) {
  for (const DType dtype : {DType::kF64, DType::kC64, DType::kC128}) {
    const double slack = dtype == DType::kC64 ? 2e-4 : 1e-9;
    const TestTensor x = spread(random({2, 40, 40}, dtype)),
                     good = spread(regular({40, 40}, dtype));
    const TestTensor b = spread(random({2, 40, 3}, dtype, 6));
    expect_same({"lu_factor", "lapack", {x}, {}, 3}, slack);
    expect_same({"lu_factor", "lapack", {spread(random({50, 30}, dtype))}, {}, 3}, slack);
    expect_same({"slogdet", "lapack", {x}, {}, 2}, slack);
    expect_same({"inverse", "lapack", {good}, {}, 2}, slack);
    expect_same({"solve", "lapack", {good, b}, {}, 2}, slack);
    expect_same({"triangular_solve", "lapack", {good, b}, {{"upper", true}}, 2}, slack);
    for (const bool hermitian : {false, true})
      expect_same(
          {"ldl_factor", "lapack", {random({90, 90}, dtype)}, {{"hermitian", hermitian}}, 3},
          slack);
    expect_same({"geqrf", "lapack", {spread(random({70, 45}, dtype))}, {}, 2}, slack);
    expect_same({"qr", "lapack", {spread(random({45, 70}, dtype))}, {{"unique", false}}, 2}, slack);
    expect_same({"svd_values", "lapack", {x}, {}, 2}, slack);
    expect_same({"eigh", "lapack", {x}, {}, 1}, slack);
    expect_same({"matrix_exp", "pade", {x}}, slack);
  }
}

TEST(CpuLinalg, ValuesAlone) {
  expect_same({"eigh", "lapack", {random({9, 9})}, {}, 1}, 1e-9);
  expect_same({"eig", "lapack", {random({9, 9})}, {}, 1}, 1e-9);
  expect_same({"eig", "lapack", {random({6, 6}, DType::kC64)}, {}, 2}, 1e-4);
  expect_same({"eig", "lapack", {random({6, 6}, DType::kC128)}, {}, 2}, 1e-9);
}

TEST(CpuLinalg, Info) {
  const TestTensor both(DType::kF64, {2, 2, 2}, {1, 2, 2, 4, 2, 0, 0, 4});
  expect_same({"inverse", "lapack", {both}, {}, 2}, 1e-12);
  expect_same({"solve", "lapack", {both, random({2, 3})}, {}, 2}, 1e-12);
  expect_same({"lu_factor", "lapack", {both}, {}, 3}, 1e-12);
  expect_same({"slogdet", "lapack", {both}, {}, 2}, 1e-12);
  const TestTensor definite(DType::kF64, {2, 2, 2}, {1, 2, 2, 1, 4, 0, 0, 9});
  expect_same({"cholesky", "lapack", {definite}, {}, 2}, 1e-12);
  for (const bool upper : {false, true})
    for (const bool transpose : {false, true})
      for (const bool left : {false, true})
        expect_same({"triangular_solve",
                     "lapack",
                     {TestTensor(DType::kF64, {3, 3}, {1, 2, 3, 4, 0, 6, 7, 8, 9}), random({3, 3})},
                     {{"upper", upper}, {"transpose", transpose}, {"left", left}},
                     2},
                    1e-12);
  const TestTensor none(DType::kF64, {2, 2}, {1, kNan, 0, 1});
  for (const char* op : {"svd", "svd_values", "eig"})
    expect_same({op, "lapack", {none}, {}, get_op(op).outputs.size()}, 1e-12);
  expect_same({"eigh", "lapack", {none}, {{"upper", true}}, 3}, 1e-12);
  expect_same({"eigh", "lapack", {none}, {}, 3}, 1e-12);  // the half that is not read
}

TEST(CpuLinalg, LeastSquaresOfLowRank) {
  const TestTensor low(DType::kF64, {3, 3}, {1, 2, 3, 2, 4, 6, 1, 0, 1});
  for (const char* driver : {"gelsy", "gelsd", "gelss"}) {
    expect_same({"lstsq", "lapack", {low, random({2, 3, 2})}, {{"driver", driver}}, 3}, 1e-9);
    expect_same({"lstsq",
                 "lapack",
                 {random({7, 4}), random({7, 2})},
                 {{"driver", driver}, {"rcond", 0.0}},
                 4},
                1e-9);
  }
  KernelCase zero{"lstsq",
                  "lapack",
                  {TestTensor(DType::kF64, {2, 1}, {0, 0}), random({2, 1})},
                  {{"driver", "gels"}}};
  EXPECT_EQ(error_of([&] { run_cpu_kernel(zero); }), "[lstsq] a matrix has not full rank");
}

TEST(CpuLinalg, PivotsAreChecked) {
  const TestTensor a = regular({3, 3}), b = random({3, 1});
  const auto run = [&](const char* op, const std::vector<int32_t>& pivots) {
    KernelCase test{op, "lapack", {a, TestTensor::of<int32_t>({3}, pivots), b}};
    return error_of([&] { run_cpu_kernel(test); });
  };
  EXPECT_EQ(run("lu_solve", {1, 4, 3}), "[lu_solve] pivot 4 is not in [1, 3]");
  EXPECT_EQ(run("lu_solve", {0, 2, 3}), "[lu_solve] pivot 0 is not in [1, 3]");
  EXPECT_EQ(run("ldl_solve", {1, 2, 9}), "[ldl_solve] pivot 9 is not in [1, 3]");
  EXPECT_EQ(run("ldl_solve", {1, 2, -3}), "[ldl_solve] the pivots end within a block of 2 rows");
}

// Signs and orders of LAPACK's own are any, but the product is the matrix.
TEST(CpuLinalg, FactorsAsLapackGivesThem) {
  const TestTensor x = random({6, 4});
  KernelCase svd{"svd", "lapack", {x}, {{"unique", false}}, 3};
  const KernelResult out = run_cpu_kernel(svd);
  ASSERT_TRUE(out.kernel) << out.why;
  for_each_index(x.shape(), [&](const Shape& at) {
    std::complex<double> sum = 0;
    for (int64_t k = 0; k < 4; ++k)
      sum +=
          out.outputs[0].get({at[0], k}) * out.outputs[1].get({k}) * out.outputs[2].get({k, at[1]});
    EXPECT_LT(std::abs(sum - x.get(at)), 1e-12);
  });
}

TEST(CpuDistance, Sizes) {
  for (const double p : {0.0, 0.5, 1.0, 2.0, 3.0, kInf}) {
    const TestTensor a = spread(random({3, 70, 5}, DType::kF32)), b = random({150, 5}, DType::kF32);
    expect_same({"cdist", "tiles", {a, b}, {{"p", p}}}, 1e-6);
    expect_same({"pdist", "tiles", {spread(random({80, 5}))}, {{"p", p}}}, 1e-12);
    expect_same({"vector_norm", "plain", {a}, {{"p", p}, {"axes", Ints{0, 2}}}}, 1e-6);
  }
}

}  // namespace
}  // namespace anymps::testing
