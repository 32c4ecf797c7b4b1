// SPDX-License-Identifier: Apache-2.0
// Kernels of orders, running sums and choices against the reference: sizes that take several
// threads, and elements that come more than once.
#include <cmath>

#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

// Few different values, so that equal ones are common.
TestTensor repeated(DType dtype, Shape shape) {
  return TestTensor(dtype, std::move(shape)).fill(3, -4, 4);
}

TEST(CpuLines, Samples) {
  for (const char* op :
       {"cumsum", "cumprod", "cummin", "cummax", "sort", "argsort", "top_k", "softmax_gradient"})
    EXPECT_GE(expect_samples_as_reference(op, kSomeDTypes), 5) << op;
}

TEST(CpuSort, EqualElementsKeepTheirOrder) {
  for (DType dtype : dtypes_of(kReal | kBoolean))
    for (bool descending : {false, true}) {
      const NamedAttrs attrs = {{"descending", descending}, {"axis", 1}};
      expect_as_reference("argsort", {repeated(dtype, {40, 700})}, attrs);
      expect_as_reference("sort", {repeated(dtype, {5, 300, 3}).scrambled()}, attrs);
    }
}

TEST(CpuSort, TopKOfMany) {
  for (int k : {1, 7, 100, 1000})
    for (bool largest : {false, true}) {
      const NamedAttrs attrs = {{"k", k}, {"largest", largest}};
      expect_as_reference("top_k", {TestTensor(DType::kI32, {30, 1000}).fill(2, -90, 90)}, attrs, 0,
                          2);
    }
}

// Few that are kept in order as they come, and more; lines that are dense and that are not; equal
// elements, NaN and infinities.
TEST(CpuSort, TopKOfEveryLength) {
  for (DType dtype : dtypes_of(kReal))
    for (int k : {1, 2, 8, 23, 24, 25, 60})
      for (int64_t length : {24, 60, 61, 100, 200, 333}) {
        if (length < k) continue;
        TestTensor x = TestTensor(dtype, {3, length}).fill(k, -40, 40);
        if (is_float(dtype)) {
          for (int64_t i = 0; i < length; i += 9) x.put({1, i}, i % 2 == 0 ? kNan : -0.0);
          x.put({2, length - 1}, kNan), x.put({2, 3}, kInf), x.put({2, 4}, -kInf);
        }
        TestTensor turned = TestTensor(dtype, {length, 3});
        for_each_index(x.shape(), [&](const Shape& i) { turned.put({i[1], i[0]}, x.get(i)); });
        for (bool largest : {false, true}) {
          expect_as_reference("top_k", {x}, {{"k", k}, {"largest", largest}}, 0, 2);
          expect_as_reference("top_k", {turned}, {{"k", k}, {"largest", largest}, {"axis", 0}}, 0,
                              2);
        }
      }
}

TEST(CpuSort, TopKGradient) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64})
    for (bool largest : {false, true}) {
      const TestTensor x = TestTensor(dtype, {30, 100, 3}).fill(2, -4, 4);
      const NamedAttrs attrs = {{"axis", 1}, {"largest", largest}};
      expect_as_reference("top_k_gradient", {TestTensor(dtype, {30, 20, 3}).fill(1), x}, attrs);
      expect_as_reference("top_k_gradient",
                          {TestTensor(dtype, {30, 100, 3}).fill(1).scrambled(), x.scrambled()},
                          attrs);
    }
}

TEST(CpuCumulative, LongLines) {
  for (const char* op : {"cumsum", "cummax"})
    for (int axis : {0, 1}) {
      const TestTensor x = TestTensor(DType::kF32, {300, 400}).fill(1);
      expect_as_reference(op, {x}, {{"axis", axis}}, 1e-6);
      expect_as_reference(op, {x.scrambled()}, {{"axis", axis}, {"reverse", true}}, 1e-6);
    }
}

TEST(CpuSelection, NonzeroAndCompress) {
  for (DType dtype : {DType::kF32, DType::kBool, DType::kI16}) {
    const TestTensor x = TestTensor(dtype, {130, 300}).fill(1, -2, 2);
    expect_as_reference("nonzero", {x});
    expect_as_reference("nonzero", {x.scrambled()}, {{"axes_first", false}});
  }
  const TestTensor x = TestTensor(DType::kF32, {40, 60, 5}).fill(1);
  const TestTensor condition = TestTensor(DType::kBool, {60}).fill(2);
  expect_as_reference("compress", {x, condition}, {{"axes", std::vector<int64_t>{1}}});
  expect_as_reference("compress", {x, condition});
}

TEST(CpuUnique, ManyElements) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kC64, DType::kC128})
    for (bool sorted : {false, true}) {
      const TestTensor x = TestTensor(dtype, {40, 50}).fill(1, -30, 30);
      expect_as_reference("unique", {x}, {{"sorted", sorted}}, 0, 4);
      const TestTensor few = TestTensor(dtype, {6, 50, 2}).fill(1, 0, 1);
      expect_as_reference("unique", {few}, {{"sorted", sorted}, {"axes", Ints{1}}}, 0, 4);
    }
  const double nan = std::nan("");
  expect_as_reference("unique", {TestTensor(DType::kF32, {6}, {nan, 0, -0.0, nan, 1, -1})}, {}, 0,
                      4);
}

TEST(CpuSort, LongLinesOfEveryDType) {
  for (DType dtype : dtypes_of(kReal | kBoolean))
    for (int64_t length : {256, 9000}) {
      const TestTensor x = TestTensor(dtype, {2, length}).fill(5, -100, 100);
      expect_as_reference("sort_with_indices", {x}, {}, 0, 2);
      expect_as_reference("sort_with_indices", {x}, {{"descending", true}}, 0, 2);
      for (int k : {1, 40})
        expect_as_reference("top_k", {contains(kReal, dtype) ? x : random_f32({3, 300})},
                            {{"k", k}}, 0, 2);
      for (const char* op : {"median", "mode", "kth_value"}) expect_as_reference(op, {x}, {}, 0, 2);
    }
}

TEST(CpuExtremum, LinesSideBySide) {
  for (DType dtype : dtypes_of(kReal | kBoolean))
    for (const char* op : {"max_with_indices", "min_with_indices"})
      for (int axis : {0, 1, 2}) {
        const TestTensor x = repeated(dtype, {7, 30, 300});
        expect_as_reference(op, {x}, {{"axis", axis}}, 0, 2);
        expect_as_reference(op, {x.scrambled()}, {{"axis", axis}, {"keep_dims", true}}, 0, 2);
        if (dtype == DType::kBool) continue;
        for (bool last : {false, true})
          expect_as_reference("arg_max", {x}, {{"axis", axis}, {"select_last", last}});
      }
}

TEST(CpuCumulative, LinesSideBySide) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI32, DType::kC64, DType::kC128})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true})
        expect_as_reference("cumsum", {TestTensor(dtype, {3, 20, 150}).fill(1)},
                            {{"axis", 1}, {"exclusive", exclusive}, {"reverse", reverse}}, 2e-3);
}

TEST(CpuSearch, ManyElements) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kI16, DType::kF64}) {
    const TestTensor x = TestTensor(dtype, {60, 70}).fill(1, -50, 50);
    const TestTensor sorted = run_reference("sort", {TestTensor(dtype, {60, 90}).fill(2, -50, 50)});
    for (bool right : {false, true})
      expect_as_reference("search_sorted", {sorted, x}, {{"right", right}});
    expect_as_reference("is_in", {x, TestTensor(dtype, {40}).fill(3, -50, 50)});
  }
  expect_as_reference(
      "bincount", {TestTensor(DType::kI32, {5000}).fill(1, 0, 99), random_f32({5000})}, {}, 1e-6);
  expect_as_reference("histogram", {random_f32({5000})}, {{"bins", 33}}, 1e-6, 2);
}

}  // namespace
}  // namespace anymps::testing
