// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor number(DType dtype, double value) { return TestTensor(dtype, {}, {value}); }

TEST(ReferenceCreation, Range) {
  for (DType dtype : {DType::kI32, DType::kI64}) {
    EXPECT_EQ(
        run_reference("range", {number(dtype, 1), number(dtype, 8), number(dtype, 3)}).values(),
        (Row{1, 4, 7}));
    EXPECT_EQ(
        run_reference("range", {number(dtype, 3), number(dtype, -1), number(dtype, -2)}).values(),
        (Row{3, 1}));
  }
}

TEST(ReferenceCreation, Fill) {
  for (const DType dtype : kComputeDTypes) {
    EXPECT_TRUE(
        same(run_reference("fill", {}, {{"shape", Ints{2}}, {"value", 1.0}, {"dtype", dtype}}),
             TestTensor(dtype, {2}, {1, 1})));
    EXPECT_TRUE(
        same(run_reference("fill", {TestTensor::of<int64_t>({2}, {1, 2}), number(dtype, 1)}),
             TestTensor(dtype, {1, 2}, {1, 1})));
  }
}

TEST(ReferenceCreation, OneHot) {
  const TestTensor depth = TestTensor::of<int64_t>({}, {3}), off_on(DType::kF32, {2}, {-1, 2});
  const TestTensor indices = TestTensor::of<int64_t>({4}, {0, -1, 3, -4});
  EXPECT_EQ(run_reference("one_hot", {indices, depth, off_on}).values(),
            (Row{2, -1, -1, -1, -1, 2, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(run_reference("one_hot", {indices, depth, off_on}, {{"axis", 0}}).values(),
            (Row{2, -1, -1, -1, -1, -1, -1, -1, -1, 2, -1, -1}));
}

}  // namespace
}  // namespace anymps::testing
