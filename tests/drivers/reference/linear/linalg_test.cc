// SPDX-License-Identifier: Apache-2.0
// Expected numbers are NumPy's, or by hand; what is not unique is multiplied back.
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::run_reference;
using testing::run_reference_all;
using testing::same;
using testing::TestTensor;

TestTensor matrix(const Shape& shape, const std::vector<double>& values) {
  return TestTensor(DType::kF64, shape, values);
}

const TestTensor& square() {
  static const TestTensor tensor = matrix({3, 3}, {2, 1, -1, -3, -1, 2, -2, 1, 2});
  return tensor;
}
const TestTensor& symmetric() {
  static const TestTensor tensor = matrix({3, 3}, {4, 2, 0.4, 2, 3, 1, 0.4, 1, 2});
  return tensor;
}

TEST(ReferenceLinalg, InverseDetAndSolve) {
  EXPECT_TRUE(same(run_reference("inverse", {square()}),
                   matrix({3, 3}, {4, 3, -1, -2, -2, 1, 5, 4, -1}), 1e-12));
  EXPECT_TRUE(same(run_reference("det", {square()}), matrix({}, {-1}), 1e-12));
  EXPECT_TRUE(same(run_reference("solve", {square(), matrix({3, 1}, {8, -11, -3})}),
                   matrix({3, 1}, {2, 3, -1}), 1e-12));
  const TestTensor singular = matrix({2, 2}, {1, 2, 2, 4});
  EXPECT_TRUE(same(run_reference("det", {singular}), matrix({}, {0})));
  EXPECT_EQ(error_of([&] { run_reference("inverse", {singular}); }),
            "[inverse] a matrix is singular");
}

TEST(ReferenceLinalg, TriangularSolveReadsOneHalf) {
  const TestTensor a = matrix({2, 2}, {2, 7, 3, 4}), b = matrix({2, 1}, {2, 11});
  const auto run = [&](bool upper, bool transpose, bool unit) {
    return run_reference("triangular_solve", {a, b},
                         {{"upper", upper}, {"transpose", transpose}, {"unit_diagonal", unit}});
  };
  EXPECT_TRUE(same(run(false, false, false), matrix({2, 1}, {1, 2}), 1e-12));
  EXPECT_TRUE(same(run(true, false, false), matrix({2, 1}, {-8.625, 2.75}), 1e-12));
  EXPECT_TRUE(same(run(false, true, true), matrix({2, 1}, {-31, 11}), 1e-12));
  EXPECT_TRUE(same(run(true, true, true), matrix({2, 1}, {2, -3}), 1e-12));
}

TEST(ReferenceLinalg, Cholesky) {
  EXPECT_TRUE(same(run_reference("cholesky", {symmetric()}),
                   matrix({3, 3}, {2, 0, 0, 1, 1.4142135623730951, 0, 0.2, 0.565685424949238,
                                   1.2806248474865698}),
                   1e-12));
  EXPECT_EQ(error_of([] {
              run_reference("cholesky", {matrix({1, 1}, {-1})});
            }),
            "[cholesky] a matrix is not positive definite");
}

TEST(ReferenceLinalg, Eigenvalues) {
  const auto out = run_reference_all("eigh", {symmetric()});
  EXPECT_TRUE(same(out[0], matrix({3}, {1.0505482149580059, 2.1554600231804444, 5.793991761861551}),
                   1e-12));
  const TestTensor m = matrix({3, 3}, {1, 2, 0, -2, 1, 1, 0, 0, 3});
  const auto general = run_reference_all("eig", {m});
  TestTensor expected(DType::kC128, {3});
  expected.put({0}, {1, -2});
  expected.put({1}, {1, 2});
  expected.put({2}, {3, 0});
  EXPECT_TRUE(same(general[0], expected, 1e-6));
  for (int64_t k = 0; k < 3; ++k)  // m v = v w
    for (int64_t i = 0; i < 3; ++i) {
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < 3; ++j) sum += m.get({i, j}) * general[1].get({j, k});
      EXPECT_LT(std::abs(sum - general[1].get({i, k}) * general[0].get({k})), 1e-6);
    }
}

TEST(ReferenceLinalg, QrAndSvd) {
  const TestTensor x = matrix({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto qr = run_reference_all("qr", {x});
  EXPECT_TRUE(same(
      qr[1], matrix({2, 2}, {5.916079783099616, 7.437357441610946, 0, 0.8280786712108248}), 1e-12));
  EXPECT_TRUE(same(run_reference("matmul", {qr[0], qr[1]}), x, 1e-12));
  for (const bool full : {false, true}) {
    const auto svd = run_reference_all("svd", {x}, {{"full_matrices", full}});
    EXPECT_TRUE(same(svd[1], matrix({2}, {9.52551809156511, 0.5143005806586441}), 1e-12));
    for_each_index(x.shape(), [&](const Shape& at) {
      double sum = 0;
      for (int64_t k = 0; k < 2; ++k)
        sum += (svd[0].get({at[0], k}) * svd[1].get({k}) * svd[2].get({k, at[1]})).real();
      EXPECT_NEAR(sum, x.get(at).real(), 1e-12);
    });
    const TestTensor one = run_reference("matmul", {svd[0], svd[0]}, {{"transpose_a", true}});
    for_each_index(one.shape(), [&](const Shape& at) {
      EXPECT_NEAR(one.get(at).real(), at[0] == at[1], 1e-12);
    });
  }
}

TEST(ReferenceEinsum, ByHand) {
  const TestTensor a = matrix({2, 2}, {1, 2, 3, 4}), b = matrix({2}, {10, 100});
  const auto run = [&](const char* equation, testing::TestInputs inputs) {
    return run_reference("einsum", std::move(inputs), {{"equation", equation}});
  };
  EXPECT_TRUE(same(run("ij,j->i", {a, b}), matrix({2}, {210, 430})));
  EXPECT_TRUE(same(run("ij,i", {a, b}), matrix({2}, {310, 420})));
  EXPECT_TRUE(same(run("ii", {a}), matrix({}, {5})));
  EXPECT_TRUE(same(run("...i->...", {a}), matrix({2}, {3, 7})));
  EXPECT_TRUE(same(run("ij,j,j->", {a, b, b}), matrix({}, {60400})));
  EXPECT_EQ(error_of([&] { run("ij->k", {a}); }), "[einsum] label 'k' of 'ij->k' is in no input");
  EXPECT_EQ(error_of([&] { run("ijk", {a}); }),
            "[einsum] 'ijk' has 3 labels for tensor 0, which has rank 2");
}

}  // namespace
}  // namespace anymps
