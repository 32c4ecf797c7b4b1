// SPDX-License-Identifier: Apache-2.0
// Elements in another arrangement; numbers by hand and from NumPy.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(ReferenceBlocks, Interleave) {
  const TestTensor a(DType::kF32, {3}, {1, 2, 3}), b(DType::kF32, {3}, {4, 5, 6});
  EXPECT_EQ(run_reference("interleave", {a, b}).values(), (Row{1, 4, 2, 5, 3, 6}));
}

TEST(ReferenceBlocks, SpaceToBatchAndBack) {
  const TestTensor x(DType::kF32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  NamedAttrs attrs = {{"axes", Ints{1, 2}}, {"block", Ints{2, 2}}};
  const TestTensor y = run_reference("space_to_batch", {x}, attrs);
  EXPECT_EQ(y.shape(), (Shape{8, 1, 1}));
  EXPECT_EQ(y.values(), (Row{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_TRUE(same(run_reference("batch_to_space", {y}, attrs), x));
  attrs.emplace_back("pixel_shuffle", true);
  const TestTensor shuffled = run_reference("space_to_batch", {x}, attrs);
  EXPECT_EQ(shuffled.values(), (Row{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(same(run_reference("batch_to_space", {shuffled}, attrs), x));
}

TEST(ReferenceBlocks, Reinterpret) {
  const TestTensor x(DType::kF32, {1, 2}, {1, -2});
  const TestTensor bytes = run_reference("reinterpret", {x}, {{"dtype", DType::kU8}});
  EXPECT_EQ(bytes.shape(), (Shape{1, 8}));
  EXPECT_EQ(bytes.values(), (Row{0, 0, 128, 63, 0, 0, 0, 192}));
  EXPECT_TRUE(same(run_reference("reinterpret", {bytes}, {{"dtype", DType::kF32}}), x));
  EXPECT_EQ(error_of([&] {
              run_reference("reinterpret", {TestTensor(DType::kU8, {3})}, {{"dtype", DType::kF32}});
            }),
            "[reinterpret] 3 elements of u8 are no whole number of f32");
}

TEST(ReferenceBlocks, CoordinateAlongAxis) {
  EXPECT_EQ(
      run_reference("coordinate_along_axis", {}, {{"shape", Ints{2, 3}}, {"axis", 1}}).values(),
      (Row{0, 1, 2, 0, 1, 2}));
  const TestTensor shape = TestTensor::of<int64_t>({2}, {2, 2});
  EXPECT_EQ(run_reference("coordinate_along_axis", {shape}).dtype(), DType::kI32);
  EXPECT_EQ(run_reference("coordinate_along_axis", {shape}).values(), (Row{0, 0, 1, 1}));
}

TEST(ReferenceShapeGradient, SliceUpdate) {
  const TestTensor x(DType::kF32, {5}, {1, 2, 3, 4, 5}), update(DType::kF32, {2}, {10, 20});
  const NamedAttrs range = {{"starts", Ints{-1}}, {"ends", Ints{0}}, {"steps", Ints{-2}}};
  EXPECT_EQ(run_reference("slice_update", {x, update}, range).values(), (Row{1, 2, 20, 4, 10}));
  NamedAttrs gradient = range;
  gradient.emplace_back("shape", Ints{5});
  EXPECT_EQ(run_reference("slice_gradient", {update}, gradient).values(), (Row{0, 0, 20, 0, 10}));
}

TEST(ReferenceShapeGradient, TileAndPad) {
  const TestTensor dy(DType::kF32, {6}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_reference("tile_gradient", {dy}, {{"repeats", Ints{3}}}).values(), (Row{9, 12}));
  const auto pad = [&](const char* mode) {
    return run_reference("pad_gradient", {dy}, {{"pads", Ints{2, 1}}, {"mode", mode}}).values();
  };
  // x has 3 elements, at places 2, 3, 4 of dy.
  EXPECT_EQ(pad("constant"), (Row{3, 4, 5}));
  EXPECT_EQ(pad("edge"), (Row{6, 4, 11}));
  EXPECT_EQ(pad("reflect"), (Row{3, 12, 6}));
  EXPECT_EQ(pad("symmetric"), (Row{5, 5, 11}));
  EXPECT_EQ(pad("wrap"), (Row{9, 5, 7}));
  EXPECT_EQ(pad("anti_wrap"), (Row{-3, 3, 3}));
}

TEST(ReferenceSlice, PadAntiWrap) {
  const TestTensor x(DType::kF32, {2}, {1, 2});
  EXPECT_EQ(run_reference("pad", {x}, {{"pads", Ints{3, 2}}, {"mode", "anti_wrap"}}).values(),
            (Row{2, -1, -2, 1, 2, -1, -2}));
}

}  // namespace
}  // namespace anymps::testing
