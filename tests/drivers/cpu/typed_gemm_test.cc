// SPDX-License-Identifier: Apache-2.0
// Products of f64, integers and complex numbers against the reference: shapes around the sizes of
// tiles and blocks, operands and results that lie otherwise, and any number of threads.
#include <gtest/gtest.h>

#include <cstring>

#include "against_reference.h"
#include "run_cpu.h"

namespace anymps {
namespace {

using testing::dtypes_of;
using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::spread;
using testing::TestInputs;
using testing::TestTensor;

constexpr DTypeSet kTyped = bit(DType::kF64) | kInt | kComplex;

double tolerance_of(DType dtype) { return get_op("matmul").test.tolerance.of(dtype); }

TestTensor random(DType dtype, Shape shape, uint64_t seed) {
  const double most = is_int(dtype) ? 9 : 1;
  return TestTensor(dtype, std::move(shape)).fill(seed, -most, most);
}

TEST(TypedProducts, Samples) {
  const Op& op = get_op("matmul");
  for (const DType dtype : dtypes_of(kTyped))
    for (const Sample& sample : op.test.samples) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), sample.label));
      const Attrs attrs(op, sample.attrs);
      const bool plain = attrs.s("activation") == "none" && attrs.f("alpha") == 1;
      if (!plain && (contains(kComplex, dtype) ? attrs.s("activation") != "none"
                                               : dtype != DType::kF64 && sample.label != "relu" &&
                                                     sample.label != "clamp"))
        continue;
      expect_same({"matmul", "typed", inputs_of(op, sample, dtype), sample.attrs},
                  op.test.tolerance.of(dtype));
    }
}

// Rows of 1 to two tiles, columns of less than a vector to more than a panel, depths around the
// block's.
TEST(TypedProducts, Sizes) {
  for (const DType dtype :
       {DType::kF64, DType::kI8, DType::kU16, DType::kI32, DType::kI64, DType::kC64, DType::kC128})
    for (const int64_t rows : {1, 2, 5, 6, 13, 50})
      for (const int64_t columns : {1, 3, 8, 33, 130})
        for (const int64_t depth : {1, 7, 256, 515}) {
          if (rows * columns * depth > 200000 && is_int(dtype)) continue;
          SCOPED_TRACE(fmt::format("{} {} x {} x {}", name(dtype), rows, depth, columns));
          expect_same({"matmul",
                       "typed",
                       {random(dtype, {rows, depth}, 1), random(dtype, {depth, columns}, 2)},
                       {}},
                      10 * tolerance_of(dtype));
        }
}

TEST(TypedProducts, AnyStrides) {
  for (const DType dtype : dtypes_of(kTyped))
    for (const int64_t rows : {1, 20})
      for (const int64_t columns : {1, 40}) {
        SCOPED_TRACE(fmt::format("{} {} x {}", name(dtype), rows, columns));
        const TestTensor a = random(dtype, {2, rows, 9}, 1), b = random(dtype, {2, 9, columns}, 2);
        const double tolerance = tolerance_of(dtype);
        expect_same({"matmul", "typed", {a.scrambled(), b}, {}}, tolerance);
        expect_same({"matmul", "typed", {a, b.scrambled()}, {}}, tolerance);
        expect_same({"matmul", "typed", {spread(a), spread(b)}, {}}, tolerance);
        KernelCase test{"matmul", "typed", {a, b}, {}};
        test.out_strides = Strides{1, 2, 2 * rows + 3};
        expect_same(test, tolerance);
      }
}

TEST(TypedProducts, IntegersWrap) {
  const auto square = [](DType dtype, double value) {
    KernelCase test{"matmul",
                    "typed",
                    {TestTensor(dtype, {1, 3}, {value, value, 2}),
                     TestTensor(dtype, {3, 1}, {value, value, 1})},
                    {}};
    return testing::run_cpu_kernel(test).outputs.at(0).values();
  };
  EXPECT_EQ(square(DType::kI8, 100), std::vector<double>{34});         // 20002 - 78 * 256
  EXPECT_EQ(square(DType::kU8, 200), std::vector<double>{130});        // 80002 - 312 * 256
  EXPECT_EQ(square(DType::kI16, 300), std::vector<double>{-16606});    // 180002 - 3 * 65536
  EXPECT_EQ(square(DType::kU32, 65536), std::vector<double>{2});       // 2^33 + 2
  EXPECT_EQ(square(DType::kI64, 4294967296), std::vector<double>{2});  // 2^65 + 2
}

TEST(TypedProducts, DoNotDependOnThreads) {
  for (const DType dtype : {DType::kF64, DType::kC64, DType::kC128}) {
    const TestInputs inputs{random(dtype, {3, 70, 600}, 1), random(dtype, {3, 600, 90}, 2)};
    std::vector<TestTensor> results;
    for (const int threads : {1, 2, 3}) {
      KernelCase test{"matmul", "typed", inputs, {}};
      test.threads = threads;
      results.push_back(testing::run_cpu_kernel(test).outputs.at(0));
      EXPECT_EQ(std::memcmp(results[0].ptr(), results.back().ptr(), results[0].desc().bytes()), 0)
          << name(dtype) << " with " << threads << " threads";
    }
  }
}

TEST(TypedProducts, EinsumUsesThem) {
  for (const DType dtype : dtypes_of(kTyped)) {
    SCOPED_TRACE(name(dtype));
    const double tolerance = tolerance_of(dtype);
    const auto equation = [](const char* text) { return NamedAttrs{{"equation", text}}; };
    const TestTensor a = random(dtype, {4, 5, 6}, 1), b = random(dtype, {6, 4, 3}, 2);
    expect_same({"einsum", "matmul", {a, b}, equation("ijk,kil->jl")}, tolerance);
    expect_same({"einsum", "matmul", {a, b}, equation("ijk,kil->lij")}, tolerance);
    expect_same({"einsum", "matmul", {a}, equation("ijk->ki")}, tolerance);
  }
}

}  // namespace
}  // namespace anymps
