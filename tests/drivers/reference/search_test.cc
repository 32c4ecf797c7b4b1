// SPDX-License-Identifier: Apache-2.0
// Searches, sets, counts and histograms; numbers from PyTorch.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(ReferenceSearch, SearchSorted) {
  const TestTensor sorted = f32s({1, 3, 5, 7, 9});
  const TestTensor values = f32({2, 4}, {3, 6, 9, kNan, 0, 10, 1, 5});
  EXPECT_EQ(run_reference("search_sorted", {sorted, values}).values(),
            (Row{1, 3, 4, 5, 0, 5, 0, 2}));
  EXPECT_EQ(run_reference("search_sorted", {sorted, values}, {{"right", true}}).values(),
            (Row{2, 3, 5, 5, 0, 5, 1, 3}));
  EXPECT_EQ(
      run_reference("search_sorted", {f32({2, 3}, {1, 3, 5, 2, 4, 6}), f32({2, 2}, {3, 6, 3, 6})})
          .values(),
      (Row{1, 3, 1, 2}));
  EXPECT_EQ(
      run_reference("search_sorted", {f32s({5, 1, 3}), f32s({2, 3, 9}), indices({3}, {1, 2, 0})})
          .values(),
      (Row{1, 1, 3}));
  EXPECT_EQ(error_of([] {
              run_reference("search_sorted", {f32s({5, 1}), f32s({2}), indices({2}, {1, 2})});
            }),
            "[search_sorted] index 2 is out of range for axis 0 of extent 2");
}

TEST(ReferenceSearch, IsIn) {
  const TestTensor x = f32s({1, kNan, -0.0, 4}), members = f32s({0, kNan, 4});
  EXPECT_EQ(run_reference("is_in", {x, members}).values(), (Row{0, 0, 1, 1}));
  EXPECT_EQ(run_reference("is_in", {x, members}, {{"invert", true}}).values(), (Row{1, 1, 0, 0}));
}

TEST(ReferenceSearch, Bincount) {
  const TestTensor counts =
      run_reference("bincount", {indices({4}, {1, 3, 1, 0})}, {{"min_length", 6}});
  EXPECT_EQ(counts.values(), (Row{1, 2, 0, 1, 0, 0}));
  EXPECT_EQ(counts.dtype(), DType::kI64);
  const TestTensor sums =
      run_reference("bincount", {indices({3}, {1, 3, 1}), f32s({0.5, 2, 0.25})});
  EXPECT_EQ(sums.values(), (Row{0, 0.75, 0, 2}));
  EXPECT_EQ(sums.dtype(), DType::kF32);
  EXPECT_EQ(error_of([] { run_reference("bincount", {indices({1}, {-1})}); }),
            "[bincount] x has the element -1");
}

TEST(ReferenceSearch, Histogram) {
  const TestTensor x = f32s({-1, 0, 0.5, 1, 1, 2, 3});
  const auto range =
      run_reference_all("histogram", {x}, {{"bins", 4}, {"low", 0.0}, {"high", 2.0}});
  EXPECT_EQ(range[0].values(), (Row{1, 1, 2, 1}));
  EXPECT_EQ(run_reference_all("histogram", {x, f32s({0, 1, 2, 3})})[0].values(), (Row{2, 2, 2}));
  const auto weighed =
      run_reference_all("histogram", {x, std::nullopt, f32s({1, 2, 3, 4, 5, 6, 7})},
                        {{"bins", 3}, {"low", 0.0}, {"high", 3.0}, {"density", true}});
  EXPECT_TRUE(same(weighed[0], f32s({5.0 / 27, 9.0 / 27, 13.0 / 27}), 1e-6));
  EXPECT_EQ(weighed[1].values(), (Row{0, 1, 2, 3}));
  const auto own = run_reference_all("histogram", {f32s({1, 2, 4})}, {{"bins", 3}});
  EXPECT_EQ(own[0].values(), (Row{1, 1, 1}));
  EXPECT_EQ(own[1].values(), (Row{1, 2, 3, 4}));
  const auto equal = run_reference_all("histogram", {f32s({2, 2})}, {{"bins", 2}});
  EXPECT_EQ(equal[0].values(), (Row{0, 2}));
  EXPECT_EQ(equal[1].values(), (Row{1.5, 2, 2.5}));
  const auto special = run_reference_all("histogram", {f32s({kNan, 1, kInf})},
                                         {{"bins", 1}, {"low", 0.0}, {"high", 2.0}});
  EXPECT_EQ(special[0].values(), Row{1});
}

}  // namespace
}  // namespace anymps::testing
