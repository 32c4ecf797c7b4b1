// SPDX-License-Identifier: Apache-2.0
// Rows that fit registers, and columns that do not fill vectors: every length, NaN and infinities.
#include <cmath>

#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

// Some rows with what no vector may mix up with another row's.
TestTensor with_extremes(int64_t rows, int64_t length) {
  TestTensor x = random_f32({rows, length}, static_cast<uint64_t>(length), -3, 3);
  x.put({1, length - 1}, kNan);
  for (int64_t i = 0; i < length; ++i) x.put({2, i}, -kInf);
  x.put({3, length / 2}, -kInf);
  x.put({4, 0}, kInf);
  return x;
}

TEST(CpuShortRows, SoftmaxOfEveryLength) {
  for (int64_t n = 1; n <= 135; n += n < 70 ? 1 : 3)
    for (const char* op : {"softmax", "log_softmax"}) {
      expect_as_reference(op, {with_extremes(9, n)}, {{"axis", 1}}, 1e-6);
      const TestTensor gaps = random_f32({3, 5, n}).with_strides({(n + 3) * 7, n + 3, 1});
      expect_as_reference(op, {gaps}, {{"axis", 2}}, 1e-6);
    }
}

TEST(CpuShortRows, NormsOfEveryLength) {
  for (int64_t n = 1; n <= 135; n += n < 70 ? 1 : 3) {
    const TestTensor x = random_f32({9, n}, 1, 5, 9), gamma = random_f32({n}, 2),
                     beta = random_f32({n}, 3);
    const TestTensor gaps = random_f32({3, 5, n}).with_strides({(n + 3) * 7, n + 3, 1});
    for (const char* op : {"layer_norm", "rms_norm"})
      for (const TestTensor& input : {x, gaps}) {
        const NamedAttrs attrs = {{"axis", -1}};
        expect_as_reference(op, {input, gamma}, attrs, 1e-4);
        if (std::string_view(op) == "layer_norm")
          expect_as_reference(op, {input, gamma, beta}, attrs, 1e-4);
      }
  }
}

TEST(CpuShortRows, ExtremaOfEveryLength) {
  for (int64_t n = 1; n <= 135; n += n < 70 ? 1 : 3)
    for (const char* op : {"arg_max", "arg_min"}) {
      expect_as_reference(op, {with_extremes(9, n)}, {{"axis", 1}});
      const TestTensor repeated = TestTensor(DType::kF32, {3, 5, n}).fill(7, -2, 2);
      TestTensor gaps = random_f32({3, 5, n}).with_strides({(n + 3) * 7, n + 3, 1});
      for_each_index(gaps.shape(), [&](const Shape& i) {
        gaps.put(i, std::round(repeated.get(i).real()));  // several are the greatest
      });
      for (const bool keep : {false, true})
        expect_as_reference(op, {gaps}, {{"axis", 2}, {"keep_dims", keep}});
    }
}

TEST(CpuShortRows, AreIndependentOfThreads) {
  for (const char* op : {"softmax", "log_softmax", "layer_norm"}) {
    TestInputs inputs = {random_f32({70, 600, 33})};
    if (std::string_view(op) == "layer_norm") inputs.push_back(random_f32({33}, 2));
    const Prepared prepared = prepare_cpu(op, inputs, {{"axis", 2}});
    std::vector<TestTensor> results;
    for (const int threads : {1, 2, 3}) {
      get_driver("cpu").use_threads(threads);
      results.push_back(run(prepared, inputs)[0]);
      EXPECT_EQ(std::memcmp(results[0].ptr(), results.back().ptr(), results[0].desc().bytes()), 0)
          << op << " with " << threads << " threads";
    }
  }
}

TEST(CpuColumns, ReductionsOfEveryWidth) {
  for (int64_t width = 1; width <= 140; width += width < 40 ? 1 : 7)
    for (const char* op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_l1", "reduce_mean"}) {
      TestTensor x = random_f32({3, 37, width}, static_cast<uint64_t>(width), 1, 2);
      if (std::string_view(op) == "reduce_max" || std::string_view(op) == "reduce_min")
        x.put({1, 20, width - 1}, kNan);
      const Ints middle = {1};
      expect_as_reference(op, {x}, {{"axes", middle}}, 1e-6);
    }
}

// Finite columns, and those whose highest is not; more rows than are joined at once, and short
// runs.
TEST(CpuColumns, LogSumExp) {
  for (const DType dtype : {DType::kF32, DType::kF16})
    for (const int64_t width : {1, 5, 16, 70, 300})
      for (const int64_t length : {1, 2, 31, 33, 100}) {
        TestTensor x = TestTensor(dtype, {3, length, width}).fill(2, -9, 9);
        x.put({0, length - 1, 0}, kNan);
        for (int64_t i = 0; i < length; ++i) x.put({1, i, width - 1}, -kInf);
        x.put({1, 0, width / 2}, kInf);
        x.put({2, length / 2, width / 2}, -kInf);
        for (int64_t i = 0; i < length; ++i) x.put({2, i, 0}, 60 + i % 3);
        for (const Ints& axes : {Ints{1}, Ints{2}, Ints{0, 1}})
          expect_as_reference("reduce_log_sum_exp", {x}, {{"axes", axes}},
                              dtype == DType::kF32 ? 1e-5 : 2e-3);
      }
}

// More lines side by side than one search takes, and ends that do not fill a vector.
TEST(CpuColumns, ExtremaOfEveryWidth) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU32})
    for (const int64_t width : {1, 3, 4, 8, 9, 16, 17, 31, 64, 65, 513, 1030})
      for (const int64_t length : {1, 2, 5, 8, 13}) {
        TestTensor x = TestTensor(dtype, {2, length, width}).fill(3, -4, 4);
        if (is_float(dtype)) {
          for (int64_t i = 0; i < length; ++i) x.put({0, i, 0}, kNan);
          x.put({1, length - 1, width - 1}, kNan);
          x.put({1, length / 2, width / 2}, kNan);
          x.put({0, length / 2, width - 1}, -kInf);
          for (int64_t i = 0; i < length; ++i) x.put({1, i, width / 3}, -kInf);
        }
        for (const char* op : {"arg_max", "arg_min"})
          for (const bool last : {false, true})
            expect_as_reference(op, {x}, {{"axis", 1}, {"select_last", last}});
        for (const char* op : {"max_with_indices", "min_with_indices"})
          expect_as_reference(op, {x}, {{"axis", 1}}, 0, 2);
      }
}

}  // namespace
}  // namespace anymps::testing
