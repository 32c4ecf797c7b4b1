// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

const char* const kOps[] = {
    "reduce_sum", "reduce_mean", "reduce_max",        "reduce_min",     "reduce_prod",
    "reduce_l1",  "reduce_l2",   "reduce_sum_square", "reduce_log_sum", "reduce_log_sum_exp",
    "reduce_and", "reduce_or",   "arg_max",           "arg_min"};

TEST(CpuReduction, Samples) {
  for (const char* op : kOps) {
    const Op& record = get_op(op);
    const int expected = static_cast<int>(dtypes_of(record.inputs[0].dtypes).size() *
                                          record.test.samples.size() * 2);
    EXPECT_EQ(expect_samples_as_reference(op, kAny), expected) << op;
  }
}

TEST(CpuReduction, NaNAndInfinity) {
  const std::vector<double> values = {1, kNan, 3,    -kInf, 2,     5,     kInf, kInf,
                                      1, kNan, kNan, kNan,  -kInf, -kInf, -kInf};
  for (int64_t axis : {0, 1})
    for (bool nan : {false, true})
      for (const char* op : {"reduce_max", "reduce_min"})
        expect_as_reference(op, {TestTensor(DType::kF32, {5, 3}, values)},
                            {{"axes", std::vector<int64_t>{axis}}, {"propagate_nan", nan}});
  for (int64_t axis : {0, 1}) {
    for (const char* op : {"reduce_sum", "reduce_log_sum_exp", "reduce_mean", "reduce_l2"})
      expect_as_reference(op, {TestTensor(DType::kF32, {5, 3}, values)},
                          {{"axes", std::vector<int64_t>{axis}}}, 1e-6);
    for (bool last : {false, true})
      for (const char* op : {"arg_max", "arg_min"})
        expect_as_reference(op, {TestTensor(DType::kF32, {5, 3}, values)},
                            {{"axis", axis}, {"select_last", last}});
  }
}

// Rows too short for a vector, dense and cut out of longer ones, at each length around the border.
TEST(CpuReduction, ShortRows) {
  for (const char* op : kOps) {
    if (std::string_view(op).starts_with("arg") || std::string_view(op).ends_with("and") ||
        std::string_view(op).ends_with("or"))
      continue;
    for (const int64_t length : {1, 2, 3, 10, 15, 16, 17, 31}) {
      const NamedAttrs attrs = {{"axes", std::vector<int64_t>{2}}};
      TestInputs inputs = {TestTensor(DType::kF32, {5, 7, length}).fill(length, 0.1, 1)};
      expect_as_reference(op, inputs, attrs, 1e-6);
      inputs = {TestTensor(DType::kF32, {40, 70, length}).fill(length, 0.1, 1)};
      const Prepared prepared = prepare_cpu(op, inputs, attrs);
      get_driver("cpu").use_threads(1);
      const TestTensor one = run(prepared, inputs)[0];
      get_driver("cpu").use_threads(2);
      EXPECT_TRUE(same(run(prepared, inputs)[0], one)) << op << " " << length;
    }
  }
}

// Long sums: the error stays that of a few additions, however the axes lie.
TEST(CpuReduction, LongSumsAreExactAndIndependentOfThreads) {
  const TestTensor x = TestTensor(DType::kF32, {3, 70000}).fill(1, 0, 1);
  const TestTensor t = TestTensor(DType::kF32, {5000, 300}).fill(2, 0, 1);
  const auto both = [](const TestTensor& tensor, int64_t axis) {
    TestInputs inputs = {tensor};
    const NamedAttrs attrs = {{"axes", std::vector<int64_t>{axis}}};
    expect_as_reference("reduce_sum", inputs, attrs, 1e-6);
    const Prepared prepared = prepare_cpu("reduce_sum", inputs, attrs);
    get_driver("cpu").use_threads(1);
    const TestTensor one = run(prepared, inputs)[0];
    get_driver("cpu").use_threads(2);
    EXPECT_TRUE(same(run(prepared, inputs)[0], one));
  };
  both(x, 1);
  both(t, 0);
  expect_as_reference("reduce_mean", {x}, {}, 1e-6);
  expect_as_reference("reduce_max", {x}, {});
}

// What has vector code: runs and columns, whole and broken, of several parts, dense and with gaps.
TEST(CpuReduction, VectorsOfEveryType) {
  const Shape shapes[] = {{3, 7}, {9, 1}, {5, 70}, {70, 5}, {700, 9}, {2, 33, 600}, {2, 17000}};
  for (const DType dtype : {DType::kF64, DType::kI32, DType::kI64, DType::kU32, DType::kU64})
    for (const Shape& shape : shapes)
      for (int64_t axis = 0; axis < std::ssize(shape); ++axis)
        for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
                               "reduce_prod", "reduce_l1", "reduce_l2", "reduce_sum_square"}) {
          const bool product = std::string_view(op) == "reduce_prod";
          const TestTensor x =
              TestTensor(dtype, shape).fill(1, product ? 0.9 : -9, product ? 1.1 : 9);
          const NamedAttrs attrs = {{"axes", std::vector<int64_t>{axis}}};
          expect_as_reference(op, {x}, attrs, 1e-12);
          expect_as_reference(op, {x.scrambled()}, attrs, 1e-12);
        }
}

TEST(CpuReduction, VectorsOfDoublesWithNaN) {
  for (const Shape& shape : {Shape{40, 30}, Shape{3, 17000}})
    for (const bool everywhere : {false, true}) {
      TestTensor x = TestTensor(DType::kF64, shape).fill(1);
      int64_t at = 0;
      for_each_index(shape, [&](const Shape& index) {
        if (everywhere || at++ % 97 == 5) x.put(index, kNan);
      });
      x.put({1, 3}, kInf);
      x.put({2, 3}, -kInf);
      for (const int64_t axis : {0, 1}) {
        for (const bool nan : {false, true})
          for (const char* op : {"reduce_max", "reduce_min"})
            expect_as_reference(op, {x},
                                {{"axes", std::vector<int64_t>{axis}}, {"propagate_nan", nan}});
        for (const bool last : {false, true})
          for (const char* op : {"arg_max", "arg_min"})
            expect_as_reference(op, {x}, {{"axis", axis}, {"select_last", last}});
      }
    }
}

TEST(CpuReduction, PlacesInEveryType) {
  for (const DType dtype : {DType::kF64, DType::kI32, DType::kI64, DType::kU32, DType::kU64})
    for (const int64_t n : {1, 3, 8, 31, 500})  // few different numbers: several are the greatest
      for (const char* op : {"arg_max", "arg_min"})
        expect_as_reference(op, {TestTensor(dtype, {6, n}).fill(n, -9, 9)}, {{"axis", 1}});
}

TEST(CpuReduction, VectorsAreIndependentOfThreads) {
  for (const Shape& shape : {Shape{3, 70000}, Shape{20000, 30}, Shape{500, 700}, Shape{200000}})
    for (int64_t axis = 0; axis < std::ssize(shape); ++axis) {
      TestInputs inputs = {TestTensor(DType::kF64, shape).fill(1)};
      const Prepared prepared =
          prepare_cpu("reduce_sum", inputs, {{"axes", std::vector<int64_t>{axis}}});
      std::vector<TestTensor> results;
      for (const int threads : {1, 2, 3}) {
        get_driver("cpu").use_threads(threads);
        results.push_back(run(prepared, inputs)[0]);
        EXPECT_EQ(std::memcmp(results[0].ptr(), results.back().ptr(), results[0].desc().bytes()), 0)
            << to_string(shape) << " axis " << axis << " with " << threads << " threads";
      }
    }
}

// Few elements a result, as of complex numbers: blocks of results, whole and broken.
TEST(CpuReduction, ShortRuns) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
                         "reduce_l1", "reduce_l2", "reduce_sum_square"})
    for (DType dtype : {DType::kF32, DType::kF16})
      for (int64_t run : {2, 3, 16, 17}) {
        const double tolerance = dtype == DType::kF16 ? 2e-3 : 1e-5;
        const TestTensor x = TestTensor(dtype, {7, 600, run}).fill(3, -2, 2);
        const NamedAttrs last = {{"axes", std::vector<int64_t>{-1}}};
        expect_as_reference(op, {x}, last, tolerance);
        expect_as_reference(op, {x.scrambled()}, last, tolerance);
      }
}

// What lies side by side in x lies apart in y: results are turned while they are written.
TEST(CpuReduction, ColumnsThatTurn) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
                         "reduce_l1", "reduce_l2", "reduce_sum_square"})
    for (const DType dtype : {DType::kF32, DType::kBF16})
      for (const Shape& shape : {Shape{2, 33, 257}, Shape{40, 17, 16}, Shape{70, 5, 300}}) {
        // As [3, reduced, columns, rows], of which a column's neighbours lie beside each other.
        const int64_t c = shape[2], r = shape[0];
        const TestTensor x = TestTensor(dtype, {3, r, c, shape[1]})
                                 .fill(4, 0.9, 1.1)
                                 .with_strides({r * c * shape[1], c, 1, r * c});
        expect_as_reference(op, {x}, {{"axes", std::vector<int64_t>{1}}},
                            dtype == DType::kF32 ? 1e-5 : 2e-2);
      }
}

TEST(CpuReduction, ChannelsLast) {
  const TestTensor x = TestTensor(DType::kF32, {2, 5, 7, 9}).fill(1).with_strides({315, 1, 45, 5});
  for (const auto& axes : std::vector<std::vector<int64_t>>{{2, 3}, {1}, {0, 2, 3}, {1, 2}})
    for (bool keep : {false, true})
      for (const char* op : {"reduce_sum", "reduce_max", "reduce_mean", "reduce_log_sum_exp"})
        expect_as_reference(op, {x}, {{"axes", axes}, {"keep_dims", keep}}, 5e-6);
}

TEST(CpuSumTo, SumsOfBroadcasts) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kC64, DType::kC128})
    for (const Shape& like :
         {Shape{70}, Shape{60, 1}, Shape{5, 1, 1}, Shape{1, 60, 70}, Shape{}, Shape{5, 60, 70}}) {
      const TestTensor x = TestTensor(dtype, {5, 60, 70}).fill(1, 1, 9);  // nothing cancels
      expect_as_reference("sum_to", {x, TestTensor(dtype, like)}, {}, 1e-5);
      expect_as_reference("sum_to", {x.scrambled(), TestTensor(dtype, like)}, {}, 1e-5);
    }
}

TEST(CpuHammingDistance, ManyVectors) {
  for (DType dtype : {DType::kI8, DType::kU16, DType::kI32, DType::kU64})
    expect_as_reference("hamming_distance",
                        {TestTensor(dtype, {30, 1, 40}).fill(1, 0, 100),
                         TestTensor(dtype, {1, 50, 40}).fill(2, 0, 100).scrambled()});
}

}  // namespace
}  // namespace anymps::testing
