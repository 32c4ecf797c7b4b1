// SPDX-License-Identifier: Apache-2.0
// Windows: im2col, col2im and stencils, and sparse matrices; numbers by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(ReferenceIm2col, Columns) {
  const TestTensor x = f32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor y = run_reference("im2col", {x}, {{"kernel", Ints{2, 2}}});
  EXPECT_EQ(y.shape(), (Shape{1, 4, 2}));
  EXPECT_EQ(y.values(), (Row{1, 2, 2, 3, 4, 5, 5, 6}));
  const TestTensor padded = run_reference(
      "im2col", {x}, {{"kernel", Ints{1, 3}}, {"pads", Ints{0, 1, 0, 0}}, {"strides", Ints{1, 2}}});
  EXPECT_EQ(padded.values(), (Row{0, 0, 1, 4, 2, 5}));
}

TEST(ReferenceIm2col, BackAddsWhereWindowsLieOverEachOther) {
  const TestTensor y = f32({1, 4, 2}, {1, 2, 2, 3, 4, 5, 5, 6});
  EXPECT_EQ(run_reference("col2im", {y}, {{"image", Ints{2, 3}}, {"kernel", Ints{2, 2}}}).values(),
            (Row{1, 4, 3, 4, 10, 6}));
  const TestTensor image = TestTensor::of<int64_t>({2}, {2, 3}),
                   kernel = TestTensor::of<int64_t>({2}, {2, 2});
  EXPECT_EQ(run_reference("col2im", {y, image, kernel}).shape(), (Shape{1, 1, 2, 3}));
  EXPECT_EQ(error_of([&] {
              run_reference("col2im", {y}, {{"image", Ints{3, 3}}, {"kernel", Ints{2, 2}}});
            }),
            "[col2im] x has 2 columns, the image has 4 windows");
}

TEST(ReferenceStencil, Reductions) {
  const TestTensor x = f32({4}, {1, 5, 2, 4}), w = f32({2}, {1, -1});
  const auto run = [&](const char* reduce) {
    return run_reference("stencil", {x, w}, {{"reduce", reduce}}).values();
  };
  EXPECT_EQ(run("sum"), (Row{-4, 3, -2}));
  EXPECT_EQ(run("product"), (Row{-5, -10, -8}));
  EXPECT_EQ(run("min"), (Row{-5, -2, -4}));
  EXPECT_EQ(run("max"), (Row{1, 5, 2}));
  EXPECT_EQ(run("arg_min"), (Row{1, 1, 1}));
  EXPECT_EQ(run("arg_max"), (Row{0, 0, 0}));
}

TEST(ReferenceStencil, Borders) {
  const TestTensor x = f32({3}, {1, 2, 3}), w = f32({3}, {1, 10, 100});
  const auto run = [&](const char* border) {
    return run_reference("stencil", {x, w}, {{"padding", "same_upper"}, {"border", border}})
        .values();
  };
  EXPECT_EQ(run("constant"), (Row{210, 321, 32}));
  EXPECT_EQ(run("edge"), (Row{211, 321, 332}));
  EXPECT_EQ(run("reflect"), (Row{212, 321, 232}));
  EXPECT_EQ(run("wrap"), (Row{213, 321, 132}));
  EXPECT_EQ(run("anti_wrap"), (Row{207, 321, -68}));
  EXPECT_EQ(run_reference("stencil", {x, w},
                          {{"padding", "offset"}, {"offsets", Ints{1}}, {"strides", Ints{2}}})
                .values(),
            (Row{32, 0}));
}

TEST(ReferenceSparse, StorageTypes) {
  // [[1, 0, 2], [0, 0, 3]]
  const Row dense = {1, 0, 2, 0, 0, 3};
  const TestTensor values = f32({3}, {1, 2, 3});
  const auto run = [&](const char* storage, const Ints& a, const Ints& b) {
    return run_reference("sparse_to_dense",
                         {values, TestTensor::of<int64_t>({3}, a),
                          TestTensor::of<int64_t>({static_cast<int64_t>(b.size())}, b)},
                         {{"storage", storage}, {"shape", Ints{2, 3}}})
        .values();
  };
  EXPECT_EQ(run("coo", {0, 2, 2}, {0, 0, 1}), dense);
  EXPECT_EQ(run("csr", {0, 2, 2}, {0, 2, 3}), dense);
  EXPECT_EQ(run("csc", {0, 0, 1}, {0, 1, 1, 3}), dense);
  EXPECT_EQ(run("coo", {0, 0, 2}, {1, 1, 1}), (Row{0, 0, 0, 3, 0, 3}));
  EXPECT_EQ(error_of([&] {
              run("coo", {0, 3, 2}, {0, 0, 1});
            }),
            "[sparse_to_dense] place (0, 3) is outside [2, 3]");
  EXPECT_EQ(error_of([&] {
              run("csr", {0, 2, 2}, {0, 4, 3});
            }),
            "[sparse_to_dense] start 0 lies after start 1");
}

}  // namespace
}  // namespace anymps::testing
