// SPDX-License-Identifier: Apache-2.0
// Order along an axis; numbers by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Row = std::vector<double>;
const TestTensor kX(DType::kF32, {2, 4}, {3, 1, 3, -2, 0, 5, 5, 4});

TEST(ReferenceSort, Sort) {
  EXPECT_EQ(run_reference("sort", {kX}).values(), (Row{-2, 1, 3, 3, 0, 4, 5, 5}));
  EXPECT_EQ(run_reference("sort", {kX}, {{"descending", true}}).values(),
            (Row{3, 3, 1, -2, 5, 5, 4, 0}));
  EXPECT_EQ(run_reference("sort", {kX}, {{"axis", 0}}).values(), (Row{0, 1, 3, -2, 3, 5, 5, 4}));
}

TEST(ReferenceSort, EqualElementsKeepTheirOrder) {
  EXPECT_EQ(run_reference("argsort", {kX}).values(), (Row{3, 1, 0, 2, 0, 3, 1, 2}));
  EXPECT_EQ(run_reference("argsort", {kX}, {{"descending", true}}).values(),
            (Row{0, 2, 1, 3, 1, 2, 3, 0}));
}

TEST(ReferenceSort, NanIsTheGreatest) {
  const TestTensor x(DType::kF32, {5}, {NAN, 1, INFINITY, NAN, -1});
  EXPECT_EQ(run_reference("argsort", {x}).values(), (Row{4, 1, 2, 0, 3}));
  EXPECT_EQ(run_reference("argsort", {x}, {{"descending", true}}).values(), (Row{0, 3, 2, 1, 4}));
}

TEST(ReferenceSort, TopK) {
  const auto top = run_reference_all("top_k", {kX}, {{"k", 2}});
  EXPECT_EQ(top[0].values(), (Row{3, 3, 5, 5}));
  EXPECT_EQ(top[1].values(), (Row{0, 2, 1, 2}));
  EXPECT_EQ(top[1].dtype(), DType::kI64);
  const auto bottom = run_reference_all("top_k", {kX}, {{"k", 3}, {"largest", false}});
  EXPECT_EQ(bottom[0].values(), (Row{-2, 1, 3, 0, 4, 5}));
  EXPECT_EQ(bottom[1].values(), (Row{3, 1, 0, 0, 3, 1}));
  const TestTensor k = TestTensor::of<int64_t>({1}, {1}), axis = TestTensor::of<int64_t>({}, {0});
  const auto rows = run_reference_all("top_k", {kX, k, axis});
  EXPECT_EQ(rows[0].shape(), (Shape{1, 4}));
  EXPECT_EQ(rows[0].values(), (Row{3, 5, 5, 4}));
  EXPECT_EQ(rows[1].values(), (Row{0, 1, 1, 1}));
  EXPECT_EQ(error_of([] {
              run_reference("top_k", {kX}, {{"k", 5}});
            }),
            "[top_k] k is 5, axis 1 has the extent 4");
}

TEST(ReferenceSort, TopKGradient) {
  const TestTensor dy(DType::kF32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_reference("top_k_gradient", {dy, kX}).values(), (Row{1, 0, 2, 0, 0, 3, 4, 0}));
  EXPECT_EQ(run_reference("top_k_gradient", {dy, kX}, {{"largest", false}}).values(),
            (Row{0, 2, 0, 1, 3, 0, 0, 4}));
}

}  // namespace
}  // namespace anymps::testing
