// SPDX-License-Identifier: Apache-2.0
// Scatters; numbers by hand and from the examples of the ONNX standard.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(ReferenceScatter, Elements) {
  const TestTensor data = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(
      run_reference("scatter_nd", {f32({4}, {9, 10, 11, 12}), indices({4, 1}, {4, 3, 1, 7}), data})
          .values(),
      (Row{1, 11, 3, 10, 9, 6, 7, 12}));
  EXPECT_EQ(run_reference(
                "scatter_along_axis",
                {f32({1, 2}, {1.1, 2.1}), indices({1, 2}, {1, -2}), f32({1, 5}, {1, 2, 3, 4, 5})},
                {{"axis", 1}})
                .values(),
            f32({1, 5}, {1, 1.1, 3, 2.1, 5}).values());
}

TEST(ReferenceScatter, ModesApplyInOrder) {
  struct Case {
    const char* mode;
    Row expected;
  };
  // Element 1 of {10, 20, 30} gets 2, then 5; element 0 gets 4.
  const std::vector<Case> cases = {
      {"set", {4, 5, 30}},   {"add", {14, 27, 30}}, {"sub", {6, 13, 30}}, {"mul", {40, 200, 30}},
      {"div", {2.5, 2, 30}}, {"min", {4, 2, 30}},   {"max", {10, 20, 30}}};
  for (const Case& test : cases) {
    const NamedAttrs attrs = {{"mode", test.mode}};
    const TestTensor updates = f32({3}, {2, 4, 5}), data = f32({3}, {10, 20, 30});
    EXPECT_EQ(
        run_reference("scatter_nd", {updates, indices({3, 1}, {1, 0, 1}), data}, attrs).values(),
        test.expected)
        << test.mode;
    EXPECT_EQ(run_reference("scatter", {updates, indices({3}, {1, 0, 1}), data}, attrs).values(),
              test.expected)
        << test.mode;
    EXPECT_EQ(run_reference("scatter_along_axis", {updates, indices({3}, {1, 0, 1}), data}, attrs)
                  .values(),
              test.expected)
        << test.mode;
  }
}

TEST(ReferenceScatter, WithoutDataStartsWithZeros) {
  const NamedAttrs attrs = {{"shape", std::vector<int64_t>{3, 2}}, {"mode", "add"}};
  EXPECT_EQ(
      run_reference("scatter", {f32({2, 2}, {1, 2, 3, 4}), indices({2}, {2, 2})}, attrs).values(),
      (Row{0, 0, 0, 0, 4, 6}));
}

TEST(ReferenceScatter, Batches) {
  const TestTensor data = f32({2, 3}, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(run_reference("scatter_nd",
                          {f32({2, 2}, {1, 2, 3, 4}), indices({2, 2, 1}, {0, 2, 1, 0}), data},
                          {{"batch_dims", 1}})
                .values(),
            (Row{1, 0, 2, 4, 3, 0}));
}

TEST(ReferenceScatter, Errors) {
  const TestTensor data = f32({3}, {1, 2, 3});
  EXPECT_EQ(error_of([&] {
              run_reference("scatter", {f32({1}, {1}), indices({1}, {3}), data});
            }),
            "[scatter] index 3 is out of range for axis 0 of extent 3");
  EXPECT_EQ(error_of([&] {
              run_reference("scatter_nd", {f32({2}, {1, 2}), indices({1, 1}, {0}), data});
            }),
            "[scatter_nd] updates have the shape [2], must have [1]");
  EXPECT_EQ(error_of([&] {
              run_reference(
                  "scatter",
                  {TestTensor(DType::kBool, {1}), indices({1}, {0}), TestTensor(DType::kBool, {2})},
                  {{"mode", "add"}});
            }),
            "[scatter] mode add is not defined for bool");
}

TEST(ReferenceScatter, WithoutSelf) {  // from PyTorch
  struct Case {
    const char* mode;
    Row with, without;
  };
  const std::vector<Case> cases = {{"add", {14, 27, 30}, {4, 7, 30}},
                                   {"mul", {40, 200, 30}, {4, 10, 30}},
                                   {"mean", {7, 9, 30}, {4, 3.5, 30}},
                                   {"max", {10, 20, 30}, {4, 5, 30}},
                                   {"min", {4, 2, 30}, {4, 2, 30}}};
  for (const Case& test : cases)
    for (const char* op : {"scatter", "scatter_along_axis"})
      for (const bool self : {true, false})
        EXPECT_EQ(run_reference(
                      op, {f32({3}, {2, 4, 5}), indices({3}, {1, 0, 1}), f32({3}, {10, 20, 30})},
                      {{"mode", test.mode}, {"include_self", self}})
                      .values(),
                  self ? test.with : test.without)
            << test.mode;
  const auto mean = [](const Ints& data, const Ints& updates, bool self) {
    return run_reference("scatter",
                         {indices({2}, updates), indices({2}, {0, 0}), indices({2}, data)},
                         {{"mode", "mean"}, {"include_self", self}})
        .values();
  };
  EXPECT_EQ(mean({-7, 4}, {1, 1}, true), (Row{-2, 4}));
  EXPECT_EQ(mean({-7, 4}, {-3, -2}, false), (Row{-3, 4}));
}

TEST(ReferenceScatter, UnderAMask) {
  const TestTensor x = f32s({1, 2, 3, 4}), mask(DType::kBool, {4}, {0, 1, 0, 1});
  EXPECT_EQ(run_reference("masked_scatter", {x, mask, f32s({9, 8, 7})}).values(),
            (Row{1, 9, 3, 8}));
  EXPECT_EQ(error_of([&] {
              run_reference("masked_scatter", {x, mask, f32s({9})});
            }),
            "[masked_scatter] the mask is true more often than source has elements: 1");
}

}  // namespace
}  // namespace anymps::testing
