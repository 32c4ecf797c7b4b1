// SPDX-License-Identifier: Apache-2.0
// LU, LDL and Householder's factors, what is made of them, and distances. Expected numbers are
// LAPACK's by way of torch, or by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using C = std::complex<double>;

TestTensor real(const Shape& shape, const Row& values) {
  return TestTensor(DType::kF64, shape, values);
}
TestTensor complex(const Shape& shape, const std::vector<C>& values) {
  TestTensor tensor(DType::kC64, shape);
  size_t next = 0;
  for_each_index(shape, [&](const Shape& at) { tensor.put(at, values[next++]); });
  return tensor;
}
TestTensor places(const Shape& shape, const std::vector<int32_t>& values) {
  return TestTensor::of<int32_t>(shape, values);
}

const TestTensor& square() {
  static const TestTensor tensor = real({3, 3}, {2, 1, -1, -3, -1, 2, -2, 1, 2});
  return tensor;
}
const TestTensor& singular() {
  static const TestTensor tensor = real({3, 3}, {1, 2, 3, 2, 4, 6, 1, 0, 1});
  return tensor;
}
const TestTensor& tall() {
  static const TestTensor tensor = real({3, 2}, {1, 2, 3, 4, 5, 6});
  return tensor;
}

TEST(ReferenceLu, Factors) {
  const auto out = run_reference_all("lu_factor", {square()}, {}, 3);
  EXPECT_TRUE(
      same(out[0], real({3, 3}, {-3, -1, 2, 2. / 3, 5. / 3, 2. / 3, -2. / 3, 0.2, 0.2}), 1e-14));
  EXPECT_EQ(out[1].values(), (Row{2, 3, 3}));
  EXPECT_EQ(out[1].dtype(), DType::kI32);
  EXPECT_EQ(out[2].values(), (Row{0}));
  const auto wide = run_reference_all("lu_factor", {real({2, 3}, {1, 2, 3, 4, 5, 7})}, {}, 3);
  EXPECT_TRUE(same(wide[0], real({2, 3}, {4, 5, 7, 0.25, 0.75, 1.25}), 1e-14));
  EXPECT_EQ(wide[1].values(), (Row{2, 2}));
  // The third pivot is what is left of nothing; without info it is an error.
  EXPECT_EQ(run_reference_all("lu_factor", {singular()}, {}, 3)[2].values(), (Row{3}));
  EXPECT_EQ(error_of([] { run_reference_all("lu_factor", {singular()}, {}, 2); }),
            "[lu_factor] a matrix is singular");
}

TEST(ReferenceLu, UnpackMultipliesBack) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 5, 3}, Shape{2, 4}}) {
    const TestTensor x = TestTensor(DType::kF64, shape).fill(3, -1, 1);
    const auto lu = run_reference_all("lu_factor", {x}, {}, 2);
    const auto plu = run_reference_all("lu_unpack", {lu[0], lu[1]}, {}, 3);
    const TestTensor product =
        run_reference("matmul", {run_reference("matmul", {plu[0], plu[1]}), plu[2]});
    EXPECT_TRUE(same(product, x, 1e-14));
  }
  EXPECT_EQ(error_of([] {
              run_reference("lu_unpack", {square(), places({3}, {1, 4, 3})});
            }),
            "[lu] pivot 4 is not in [1, 3]");
}

TEST(ReferenceLu, SolveOnEverySide) {
  const auto lu = run_reference_all("lu_factor", {square()}, {}, 2);
  const TestTensor b = real({3, 1}, {8, -11, -3}), row = real({1, 3}, {8, -11, -3});
  const TestTensor inverse = run_reference("inverse", {square()});
  const auto run = [&](const TestTensor& right, bool left, bool adjoint) {
    return run_reference("lu_solve", {lu[0], lu[1], right}, {{"left", left}, {"adjoint", adjoint}});
  };
  EXPECT_TRUE(same(run(b, true, false), real({3, 1}, {2, 3, -1}), 1e-13));
  EXPECT_TRUE(same(run(row, false, false), run_reference("matmul", {row, inverse}), 1e-12));
  EXPECT_TRUE(same(run(b, true, true),
                   run_reference("matmul", {inverse, b}, {{"transpose_a", true}}), 1e-12));
  EXPECT_TRUE(same(run(row, false, true),
                   run_reference("matmul", {row, inverse}, {{"transpose_b", true}}), 1e-12));
}

TEST(ReferenceLu, Determinants) {
  const TestTensor m = complex({2, 2}, {{1, 1}, 2, {0, 0.5}, 3});
  const auto out = run_reference_all("slogdet", {m}, {}, 2);
  EXPECT_TRUE(same(out[0], complex({}, {{0.8320502943378437, 0.5547001962252291}}), 1e-6));
  EXPECT_EQ(out[1].dtype(), DType::kF32);
  EXPECT_NEAR(out[1].values()[0], 1.2824746787307684, 1e-6);
  EXPECT_TRUE(same(run_reference("det", {m}), complex({}, {{3, 2}}), 1e-6));
  const auto none = run_reference_all("slogdet", {singular()}, {}, 2);
  EXPECT_EQ(none[0].values(), (Row{0}));
  EXPECT_EQ(none[1].values(), (Row{-kInf}));
  const auto empty = run_reference_all("slogdet", {real({0, 0}, {})}, {}, 2);
  EXPECT_EQ(empty[0].values(), (Row{1}));
  EXPECT_EQ(empty[1].values(), (Row{0}));
}

TEST(ReferenceLu, InfoInsteadOfErrors) {
  const TestTensor both = real({2, 2, 2}, {1, 2, 2, 4, 2, 0, 0, 4});
  const auto inverse = run_reference_all("inverse", {both}, {}, 2);
  EXPECT_EQ(inverse[1].values(), (Row{2, 0}));
  EXPECT_TRUE(std::isnan(inverse[0].values()[0]));
  EXPECT_EQ(inverse[0].values()[4], 0.5);
  const auto solved = run_reference_all("solve", {both, real({2}, {2, 4})}, {{"vector", true}}, 2);
  EXPECT_EQ(solved[1].values(), (Row{2, 0}));
  EXPECT_EQ(solved[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(solved[0].values()[3], 1);
  const auto factor =
      run_reference_all("cholesky", {real({2, 2, 2}, {1, 2, 2, 1, 4, 0, 0, 9})}, {}, 2);
  EXPECT_EQ(factor[1].values(), (Row{2, 0}));
  EXPECT_EQ(factor[0].values()[7], 3);
  const auto low = run_reference_all("triangular_solve",
                                     {real({2, 2}, {1, 0, 1, 0}), real({2, 1}, {1, 3})}, {}, 2);
  EXPECT_EQ(low[1].values(), (Row{2}));
  EXPECT_EQ(low[0].values(), (Row{1, kInf}));
  for (const char* op : {"svd_values", "eigh", "eig"}) {
    const auto out = run_reference_all(op, {real({1, 1}, {kNan})});
    EXPECT_EQ(out.back().values(), (Row{1})) << op;
    EXPECT_TRUE(std::isnan(out[0].values()[0])) << op;
  }
}

TEST(ReferenceSymmetric, BunchKaufman) {
  const TestTensor s = real({4, 4}, {0, 1, 2, 3, 1, 0, 4, 1, 2, 4, 0, 2, 3, 1, 2, 0});
  const auto out = run_reference_all("ldl_factor", {s}, {}, 3);
  EXPECT_TRUE(same(
      out[0],
      real({4, 4}, {0, 0, 0, 0, 3, 0, 0, 0, 2. / 3, 2. / 3, -8. / 3, 0, 1. / 3, 1. / 3, -1, 2}),
      1e-14));
  EXPECT_EQ(out[1].values(), (Row{-4, -4, 3, 4}));
  const TestTensor b = real({4, 1}, {1, 2, 3, 4});
  const TestTensor y = run_reference("ldl_solve", {out[0], out[1], b});
  EXPECT_TRUE(same(run_reference("matmul", {s, y}), b, 1e-13));
  const TestTensor h = complex({3, 3}, {1, {2, 1}, {0, 0.5}, {2, -1}, -3, 4, {0, -0.5}, 4, 0.25});
  const auto hermitian = run_reference_all("ldl_factor", {h}, {{"hermitian", true}}, 3);
  EXPECT_TRUE(same(hermitian[0],
                   complex({3, 3}, {-3,
                                    0,
                                    0,
                                    {-2. / 3, -1. / 3},
                                    5.583333333333333,
                                    0,
                                    -4. / 3,
                                    {0.4776119402985075, 0.3283582089552239},
                                    0.7910447761194028}),
                   1e-6));
  EXPECT_EQ(hermitian[1].values(), (Row{2, 3, 3}));
  const auto symmetric = run_reference_all("ldl_factor", {h}, {}, 3);
  EXPECT_EQ(symmetric[1].values(), (Row{2, 2, 3}));
  EXPECT_NEAR(symmetric[0].get({2, 2}).imag(), 2.519230769230769, 1e-6);
  EXPECT_EQ(run_reference_all("ldl_factor", {real({2, 2}, {0, 0, 0, 0})}, {}, 3)[2].values(),
            (Row{1}));
}

TEST(ReferenceSymmetric, CholeskysFactorApplied) {
  const TestTensor l = real({3, 3}, {2, 0, 0, 1, 3, 0, -1, 0.5, 1});
  EXPECT_TRUE(same(run_reference("cholesky_solve", {real({3, 1}, {1, 2, 4}), l}),
                   real({3, 1}, {2.645833333333333, -0.5416666666666666, 4.25}), 1e-14));
  const TestTensor inverse = real(
      {3, 3}, {0.6180555555555557, -0.1527777777777778, 0.5833333333333334, -0.1527777777777778,
               0.1388888888888889, -1. / 6, 0.5833333333333334, -1. / 6, 1});
  EXPECT_TRUE(same(run_reference("cholesky_inverse", {l}), inverse, 1e-14));
  EXPECT_TRUE(same(run_reference("cholesky_inverse", {real({3, 3}, {2, 1, -1, 0, 3, 0.5, 0, 0, 1})},
                                 {{"upper", true}}),
                   inverse, 1e-14));
  EXPECT_TRUE(same(run_reference("cholesky", {complex({2, 2}, {4, {1, 1}, {1, -1}, 3})}),
                   complex({2, 2}, {2, 0, {0.5, -0.5}, 1.5811388300841898}), 1e-6));
}

TEST(ReferenceHouseholder, PackedAsLapack) {
  const auto out = run_reference_all("geqrf", {tall()});
  EXPECT_TRUE(same(out[0],
                   real({3, 2}, {-5.916079783099615, -7.437357441610946, 0.4337717455676132,
                                 0.828078671210825, 0.7229529092793553, 0.8926238280228976}),
                   1e-13));
  EXPECT_TRUE(same(out[1], real({2}, {1.1690308509457032, 1.1131040011646904}), 1e-13));
  const TestTensor q =
      real({3, 2}, {-0.16903085094570325, 0.8970852271450607, -0.50709255283711,
                    0.27602622373694136, -0.8451542547285166, -0.34503277967117696});
  EXPECT_TRUE(same(run_reference("householder_product", {out[0], out[1]}), q, 1e-13));
  EXPECT_TRUE(same(run_reference("qr", {tall()}, {{"unique", false}}), q, 1e-13));
  const auto only = run_reference_all("qr", {tall()}, {{"mode", "r"}});
  EXPECT_EQ(only[0].shape(), (Shape{0}));
  EXPECT_NEAR(only[1].get({0, 0}).real(), 5.916079783099615, 1e-12);
  // q^H @ x is r.
  const TestTensor r = run_reference("ormqr", {out[0], out[1], tall()}, {{"transpose", true}});
  EXPECT_TRUE(
      same(r, real({3, 2}, {-5.916079783099615, -7.437357441610946, 0, 0.828078671210825, 0, 0}),
           1e-13));
  const auto turned =
      run_reference_all("geqrf", {complex({3, 2}, {{1, 2}, 0.5, {3, -1}, {0, 1}, 2, {2, -2}})});
  EXPECT_TRUE(same(turned[0],
                   complex({3, 2}, {-4.358898943540672,
                                    {-0.8029550685469666, 0.45883146774112366},
                                    {0.4302458520956944, -0.3471779788708136},
                                    2.897367225966578,
                                    {0.32758310703157933, -0.12225761690334928},
                                    {-0.600105233588111, 0.2123176522619755}}),
                   1e-6));
  EXPECT_TRUE(same(turned[1],
                   complex({2}, {{1.2294157338705618, 0.45883146774112366},
                                 {1.1385032689333425, -0.5694023278370743}}),
                   1e-6));
}

TEST(ReferenceHouseholder, LeastSquares) {
  const TestTensor b = real({3, 1}, {1, 2, 4});
  const auto out = run_reference_all("lstsq", {tall(), b}, {{"driver", "gelsd"}});
  EXPECT_TRUE(same(out[0], real({2, 1}, {2. / 3, 1. / 12}), 1e-12));
  EXPECT_TRUE(same(out[1], real({1}, {1. / 6}), 1e-12));
  EXPECT_EQ(out[2].values(), (Row{2}));
  EXPECT_TRUE(same(out[3], real({2}, {9.525518091565106, 0.5143005806586444}), 1e-12));
  const auto low = run_reference_all("lstsq", {singular(), b});
  EXPECT_TRUE(same(low[0], real({3, 1}, {19. / 6, -7. / 3, 5. / 6}), 1e-12));
  EXPECT_EQ(low[2].values(), (Row{2}));
  EXPECT_EQ(
      error_of([&] {
        run_reference("lstsq", {real({2, 1}, {0, 0}), real({2, 1}, {1, 1})}, {{"driver", "gels"}});
      }),
      "[lstsq] a matrix has not full rank");
}

TEST(ReferenceLinalg, ComplexMatrices) {
  const TestTensor h = complex({2, 2}, {4, {1, 1}, {1, -1}, 3});
  EXPECT_TRUE(same(run_reference("eigh", {h}), TestTensor(DType::kF32, {2}, {2, 5}), 1e-6));
  const TestTensor c = complex({3, 2}, {{1, 2}, 0.5, {3, -1}, {0, 1}, 2, {2, -2}});
  EXPECT_TRUE(same(run_reference("svd_values", {c}),
                   TestTensor(DType::kF32, {2}, {4.522255019836894, 2.7927064893325255}), 1e-6));
  const TestTensor m = complex({2, 2}, {{1, 1}, 2, {0, 0.5}, 3});
  EXPECT_TRUE(same(run_reference("eig", {m}),
                   complex({2}, {{1.1339745962155618, 0.5}, {2.8660254037844384, 0.5}}), 1e-6));
  EXPECT_TRUE(same(
      run_reference("inverse", {m}),
      complex(
          {2, 2},
          {{9. / 13, -6. / 13}, {-6. / 13, 4. / 13}, {-1. / 13, -1.5 / 13}, {5. / 13, 1. / 13}}),
      1e-6));
}

TEST(ReferenceMatrixExp, Values) {
  EXPECT_TRUE(same(run_reference("matrix_exp", {real({2, 2}, {-3, 7, -9, 4})}),
                   real({2, 2}, {0.49601220295040843, 1.2071320656362496, -1.552026941532321,
                                 1.703144268586658}),
                   1e-12));
  EXPECT_TRUE(same(run_reference("matrix_exp", {complex({2, 2}, {{0, 1}, 2, 0.5, -1})}),
                   complex({2, 2}, {{0.833649201834416, 1.0954656221535906},
                                    {1.195221464426897, 0.7800439632257843},
                                    {0.29880536610672426, 0.19501099080644607},
                                    {0.6260604512338596, 0.10783290832724976}}),
                   1e-6));
  EXPECT_TRUE(std::isnan(run_reference("matrix_exp", {real({1, 1}, {kInf})}).values()[0]));
}

TEST(ReferenceDistance, EveryOrder) {
  const TestTensor a = real({3, 2}, {1, 2, 0, -1, 3, 0.5}), b = real({2, 2}, {0, 0, 1, 1});
  struct Case {
    double p;
    Row all, pairs;
  };
  const Case cases[] = {
      {0, {2, 1, 1, 2, 2, 2}, {2, 2, 2}},
      {0.5,
       {5.82842712474619, 1, 1, 5.82842712474619, 5.949489742783177, 4.5},
       {7.464101615137754, 6.964101615137755, 8.742640687119284}},
      {1, {3, 1, 1, 3, 3.5, 2.5}, {4, 3.5, 4.5}},
      {2,
       {2.23606797749979, 1, 1, 2.23606797749979, 3.0413812651491097, 2.0615528128088303},
       {3.1622776601683795, 2.5, 3.3541019662496847}},
      {3,
       {2.080083823051904, 1, 1, 2.080083823051904, 3.004622503458683, 2.010362879294529},
       {3.0365889718756622, 2.2489707226377074, 3.120125734577856}},
      {kInf, {2, 1, 1, 2, 3, 2}, {3, 2, 3}},
  };
  for (const Case& item : cases) {
    EXPECT_TRUE(
        same(run_reference("cdist", {a, b}, {{"p", item.p}}), real({3, 2}, item.all), 1e-13))
        << item.p;
    EXPECT_TRUE(same(run_reference("pdist", {a}, {{"p", item.p}}), real({3}, item.pairs), 1e-13))
        << item.p;
  }
}

// The distance is a rounded difference, and still the one that counts.
TEST(ReferenceDistance, SlopeOfTheLargestInSinglePrecision) {
  const TestTensor x(DType::kF32, {2, 2}, {0.1, 0.2, 0.7, 0.3}), one(DType::kF32, {1}, {1});
  const TestTensor y = run_reference("pdist", {x}, {{"p", kInf}});
  EXPECT_EQ(run_reference("pdist_gradient", {one, x, y}, {{"p", kInf}}).values(),
            (Row{-1, 0, 1, 0}));
}

TEST(ReferenceVectorNorm, EveryOrder) {
  const TestTensor x = real({2, 3}, {3, -4, 0, 1, 2, -2});
  const std::pair<double, Row> cases[] = {{0, {2, 3}},
                                          {0.5, {13.928203230275509, 14.656854249492378}},
                                          {1, {7, 5}},
                                          {2, {5, 3}},
                                          {3, {4.497941445275415, 2.571281590658235}},
                                          {-1, {0, 0.5}},
                                          {kInf, {4, 2}},
                                          {-kInf, {0, 1}}};
  for (const auto& [p, expected] : cases)
    EXPECT_TRUE(
        same(run_reference("vector_norm", {x}, {{"p", p}, {"axes", Ints{1}}, {"keep_dims", false}}),
             real({2}, expected), 1e-13))
        << p;
  EXPECT_TRUE(
      same(run_reference("vector_norm", {complex({2}, {{3, 4}, 12})}, {{"keep_dims", false}}),
           TestTensor(DType::kF32, {}, {13}), 1e-6));
  EXPECT_TRUE(same(run_reference("renorm", {x}, {{"max_norm", 4.0}}),
                   real({2, 3}, {2.399999952000001, -3.199999936000001, 0, 1, 2, -2}), 1e-13));
}

TEST(ReferenceMatrixParts, CrossAndDiagonal) {
  EXPECT_EQ(run_reference("cross", {real({3}, {1, 2, 3}), real({3}, {-2, 0.5, 4})}).values(),
            (Row{6.5, -10, 4.5}));
  EXPECT_EQ(run_reference("cross", {TestTensor::of<int32_t>({3}, {1, 0, 0}),
                                    TestTensor::of<int32_t>({3}, {0, 1, 0})})
                .values(),
            (Row{0, 0, 1}));
  const TestTensor x = real({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_reference("diagonal", {x}).values(), (Row{1, 5}));
  EXPECT_EQ(run_reference("diagonal", {x}, {{"offset", 2}}).values(), (Row{3}));
  EXPECT_EQ(run_reference("diagonal", {x}, {{"offset", -1}}).values(), (Row{4}));
  EXPECT_EQ(run_reference("diagonal", {x}, {{"axis1", 1}, {"axis2", 0}, {"offset", -1}}).values(),
            (Row{2, 6}));
}

}  // namespace
}  // namespace anymps::testing
