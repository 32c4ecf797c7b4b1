// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kRows(DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});

TEST(ReferenceGather, Rows) {
  EXPECT_EQ(run_reference("gather", {kRows, indices({2}, {2, -3})}).values(), (Row{5, 6, 1, 2}));
  EXPECT_EQ(run_reference("gather", {kRows, indices({}, {1})}, {{"axis", 1}}).values(),
            (Row{2, 4, 6}));
  const TestTensor narrow = TestTensor::of<int32_t>({1, 2}, {1, 1});
  EXPECT_EQ(run_reference("gather", {kRows, narrow}).shape(), (Shape{1, 2, 2}));
}

TEST(ReferenceGather, Batch) {
  EXPECT_EQ(
      run_reference("gather", {kRows, indices({3, 1}, {1, 0, 1})}, {{"axis", 1}, {"batch_dims", 1}})
          .values(),
      (Row{2, 3, 6}));
}

TEST(ReferenceGather, Nd) {
  EXPECT_EQ(run_reference("gather_nd", {kRows, indices({2, 2}, {0, 1, -1, 0})}).values(),
            (Row{2, 5}));
  EXPECT_EQ(run_reference("gather_nd", {kRows, indices({1, 1}, {1})}).values(), (Row{3, 4}));
  EXPECT_EQ(
      run_reference("gather_nd", {kRows, indices({3, 1}, {1, 1, 0})}, {{"batch_dims", 1}}).values(),
      (Row{2, 4, 5}));
}

TEST(ReferenceGather, AlongAxis) {
  EXPECT_EQ(run_reference("gather_along_axis", {kRows, indices({1, 2}, {2, -3})}).values(),
            (Row{5, 2}));
  EXPECT_EQ(run_reference("gather_along_axis", {kRows, indices({3, 1}, {1, 0, 1})}, {{"axis", 1}})
                .values(),
            (Row{2, 3, 6}));
}

TEST(ReferenceGather, IndicesOutsideAreErrors) {
  EXPECT_EQ(error_of([] {
              run_reference("gather", {kRows, indices({1}, {3})});
            }),
            "[gather] index 3 is out of range for axis 0 of extent 3");
  EXPECT_EQ(error_of([] {
              run_reference("gather", {kRows, indices({1}, {-3})}, {{"axis", 1}});
            }),
            "[gather] index -3 is out of range for axis 1 of extent 2");
  EXPECT_EQ(error_of([] {
              run_reference("gather_nd", {kRows, indices({2}, {0, 2})});
            }),
            "[gather_nd] index 2 is out of range for axis 1 of extent 2");
  EXPECT_EQ(
      error_of([] {
        run_reference("gather_along_axis", {kRows, indices({1, 1}, {INT64_MIN})});
      }),
      "[gather_along_axis] index -9223372036854775808 is out of range for axis 0 of extent 3");
}

}  // namespace
}  // namespace anymps::testing
