// SPDX-License-Identifier: Apache-2.0
// Kernels over data against the reference: scatters, orders, running sums, choices, windows. Sizes
// that take several threads, and elements that come more than once.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

const DTypeSet kSome =
    bit(DType::kF32) | bit(DType::kF16) | bit(DType::kI8) | bit(DType::kI64) | bit(DType::kF64);

TEST(CpuData, Samples) {
  for (const char* op : {"cumsum",
                         "cumprod",
                         "cummin",
                         "cummax",
                         "sort",
                         "argsort",
                         "top_k",
                         "scatter",
                         "scatter_nd",
                         "scatter_along_axis",
                         "im2col",
                         "col2im",
                         "softmax_gradient",
                         "interleave",
                         "space_to_batch",
                         "batch_to_space",
                         "slice_update",
                         "slice_gradient",
                         "band_part",
                         "trilu",
                         "adam"})
    EXPECT_GE(expect_samples_as_reference(op, kSome), 5) << op;
}

// Few different values, so that equal ones are common.
TestTensor repeated(DType dtype, Shape shape) {
  return TestTensor(dtype, std::move(shape)).fill(3, -4, 4);
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

TEST(CpuCumulative, LongLines) {
  for (const char* op : {"cumsum", "cummax"})
    for (int axis : {0, 1}) {
      const TestTensor x = TestTensor(DType::kF32, {300, 400}).fill(1);
      expect_as_reference(op, {x}, {{"axis", axis}}, 1e-6);
      expect_as_reference(op, {x.scrambled()}, {{"axis", axis}, {"reverse", true}}, 1e-6);
    }
}

TEST(CpuScatter, CollisionsAreInOrder) {
  const TestTensor rows = TestTensor(DType::kF32, {500, 64}).fill(1);
  const TestTensor data = TestTensor(DType::kF32, {20, 64}).fill(2);
  const TestTensor places = TestTensor(DType::kI64, {500, 1}).fill(3, -20, 19);
  for (const char* mode : {"set", "add", "mul", "max"}) {
    expect_as_reference("scatter_nd", {rows, places, data}, {{"mode", mode}});
    expect_as_reference("scatter_along_axis",
                        {rows, TestTensor(DType::kI32, {500, 64}).fill(4, 0, 19), data},
                        {{"mode", mode}});
  }
}

TEST(CpuScatter, BadIndexIsAnErrorThatNamesIt) {
  TestInputs inputs = {TestTensor(DType::kF32, {2}), TestTensor(DType::kI64, {2}, {0, 7}),
                       TestTensor(DType::kF32, {3})};
  const Prepared prepared = prepare_cpu("scatter", inputs);
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[scatter] index 7 is out of range for axis 0 of extent 3");
}

TEST(CpuMatrixParts, OneHot) {
  for (DType index : {DType::kI32, DType::kI64})
    for (int axis : {0, 1, -1})
      expect_as_reference(
          "one_hot",
          {TestTensor(index, {30, 20}).fill(1, -60, 60), TestTensor(DType::kI64, {}, {40}),
           TestTensor(DType::kF32, {2}, {-1, 2})},
          {{"axis", axis}});
}

TEST(CpuMatrixParts, BandsOfManyRows) {
  const TestTensor x = TestTensor(DType::kF32, {6, 90, 70}).fill(1, 1, 2);
  for (int k : {-95, -3, 0, 5, 71}) {
    expect_as_reference("trilu", {x}, {{"k", k}});
    expect_as_reference("trilu", {x}, {{"k", k}, {"upper", false}});
    expect_as_reference("band_part", {x}, {{"lower", k}, {"upper", 2}});
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

}  // namespace
}  // namespace anymps::testing
