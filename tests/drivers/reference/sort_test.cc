// SPDX-License-Identifier: Apache-2.0
// Order along an axis; numbers by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kUnsorted(DType::kF32, {2, 4}, {3, 1, 3, -2, 0, 5, 5, 4});

TEST(ReferenceSort, Sort) {
  EXPECT_EQ(run_reference("sort", {kUnsorted}).values(), (Row{-2, 1, 3, 3, 0, 4, 5, 5}));
  EXPECT_EQ(run_reference("sort", {kUnsorted}, {{"descending", true}}).values(),
            (Row{3, 3, 1, -2, 5, 5, 4, 0}));
  EXPECT_EQ(run_reference("sort", {kUnsorted}, {{"axis", 0}}).values(),
            (Row{0, 1, 3, -2, 3, 5, 5, 4}));
}

TEST(ReferenceSort, EqualElementsKeepTheirOrder) {
  EXPECT_EQ(run_reference("argsort", {kUnsorted}).values(), (Row{3, 1, 0, 2, 0, 3, 1, 2}));
  EXPECT_EQ(run_reference("argsort", {kUnsorted}, {{"descending", true}}).values(),
            (Row{0, 2, 1, 3, 1, 2, 3, 0}));
}

TEST(ReferenceSort, NanIsTheGreatest) {
  const TestTensor x(DType::kF32, {5}, {NAN, 1, INFINITY, NAN, -1});
  EXPECT_EQ(run_reference("argsort", {x}).values(), (Row{4, 1, 2, 0, 3}));
  EXPECT_EQ(run_reference("argsort", {x}, {{"descending", true}}).values(), (Row{0, 3, 2, 1, 4}));
}

TEST(ReferenceSort, TopK) {
  const auto top = run_reference_all("top_k", {kUnsorted}, {{"k", 2}});
  EXPECT_EQ(top[0].values(), (Row{3, 3, 5, 5}));
  EXPECT_EQ(top[1].values(), (Row{0, 2, 1, 2}));
  EXPECT_EQ(top[1].dtype(), DType::kI64);
  const auto bottom = run_reference_all("top_k", {kUnsorted}, {{"k", 3}, {"largest", false}});
  EXPECT_EQ(bottom[0].values(), (Row{-2, 1, 3, 0, 4, 5}));
  EXPECT_EQ(bottom[1].values(), (Row{3, 1, 0, 0, 3, 1}));
  const TestTensor k = TestTensor::of<int64_t>({1}, {1}), axis = TestTensor::of<int64_t>({}, {0});
  const auto rows = run_reference_all("top_k", {kUnsorted, k, axis});
  EXPECT_EQ(rows[0].shape(), (Shape{1, 4}));
  EXPECT_EQ(rows[0].values(), (Row{3, 5, 5, 4}));
  EXPECT_EQ(rows[1].values(), (Row{0, 1, 1, 1}));
  EXPECT_EQ(error_of([] {
              run_reference("top_k", {kUnsorted}, {{"k", 5}});
            }),
            "[top_k] k is 5, axis 1 has the extent 4");
}

TEST(ReferenceSort, TopKGradient) {
  const TestTensor dy(DType::kF32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_reference("top_k_gradient", {dy, kUnsorted}).values(),
            (Row{1, 0, 2, 0, 0, 3, 4, 0}));
  EXPECT_EQ(run_reference("top_k_gradient", {dy, kUnsorted}, {{"largest", false}}).values(),
            (Row{0, 2, 0, 1, 3, 0, 0, 4}));
}

TEST(ReferenceSort, SortWithIndices) {
  const auto sorted = run_reference_all("sort_with_indices", {kUnsorted}, {{"descending", true}});
  EXPECT_EQ(sorted[0].values(), (Row{3, 3, 1, -2, 5, 5, 4, 0}));
  EXPECT_EQ(sorted[1].values(), (Row{0, 2, 1, 3, 1, 2, 3, 0}));
}

}  // namespace
}  // namespace anymps::testing
