// SPDX-License-Identifier: Apache-2.0
// Strided copies, the shape ops made of them, and gathers.
#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

void copy(const TestTensor& from, TestTensor& to) {
  cpu::StridedCopy(size_of(to.dtype()), to.shape(), to.desc().strides, from.desc().strides)
      .run(to.ptr(), from.ptr());
}

TEST(CpuCopy, AllLayoutsAllSizes) {
  for (DType dtype : {DType::kI8, DType::kF16, DType::kF32, DType::kC64, DType::kC128})
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{0, 3}, Shape{5, 9}, Shape{70, 50},
                               Shape{2, 33, 40}, Shape{3, 4, 5, 6}}) {
      const TestTensor x = TestTensor(dtype, shape).fill(1, -100, 100);
      const TestTensor odd = x.scrambled();
      TestTensor y(dtype, shape), z(odd.desc());
      copy(odd, y);
      EXPECT_TRUE(same(y, x));
      copy(x, z);
      EXPECT_TRUE(same(z, x));
    }
}

TEST(CpuCopy, TransposesAndBroadcasts) {
  for (DType dtype : {DType::kI8, DType::kF16, DType::kF32, DType::kI64}) {
    const TestTensor x = TestTensor(dtype, {130, 67}).fill(1, -100, 100);
    expect_as_reference("transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}});
    const TestTensor image = TestTensor(dtype, {2, 35, 6, 7}).fill(1, -100, 100);
    for (const auto& perm :
         std::vector<std::vector<int64_t>>{{0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 2, 3}, {0, 3, 1, 2}})
      expect_as_reference("transpose", {image}, {{"perm", perm}});
    expect_as_reference("expand", {TestTensor(dtype, {5, 1, 3}).fill(2)},
                        {{"shape", std::vector<int64_t>{4, 5, 6, 3}}});
  }
}

TEST(CpuCopy, FewPlanesOfBytesByPixel) {
  for (const int64_t planes : {2, 3, 4, 5})
    for (const Shape& extents : {Shape{97, 71}, Shape{1, 3}, Shape{8, 8}})
      expect_as_reference(
          "transpose",
          {TestTensor(DType::kU8, {2, planes, extents[0], extents[1]}).fill(planes, 0, 255)},
          {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
}

TEST(CpuShape, Samples) {
  const DTypeSet dtypes =
      bit(DType::kF32) | bit(DType::kF16) | bit(DType::kI8) | bit(DType::kBool) | bit(DType::kI64);
  for (const char* op :
       {"reshape", "transpose", "squeeze", "unsqueeze", "flatten", "expand", "slice", "reverse",
        "concat", "stack", "tile", "pad", "gather", "gather_nd", "gather_along_axis"})
    EXPECT_GE(expect_samples_as_reference(op, dtypes), 5) << op;
}

TEST(CpuShape, PadModes) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap", "symmetric"}) {
    for (DType dtype : {DType::kF32, DType::kI8, DType::kF16, DType::kF64}) {
      const TestTensor x = TestTensor(dtype, {3, 70}).fill(1, -100, 100);
      // Wide enough for several threads; cropped on one side; nothing but one row.
      expect_as_reference("pad", {TestTensor(dtype, {500, 130}).fill(2, -100, 100)},
                          {{"pads", Ints{3, 65, 2, 60}}, {"mode", mode}});
      expect_as_reference("pad", {x}, {{"pads", Ints{2, -20, 1, 49}}, {"mode", mode}});
      expect_as_reference("pad", {x}, {{"pads", Ints{-1, 0, -1, 0}}, {"mode", mode}});
      expect_as_reference("pad", {x.scrambled()}, {{"pads", Ints{1, 5, 2, 6}}, {"mode", mode}});
    }
    const TestTensor axes(DType::kI64, {1}, {-1}), pads(DType::kI64, {2}, {1, 2});
    expect_as_reference("pad", {TestTensor(DType::kF32, {2, 3, 4}).fill(3), pads, {}, axes},
                        {{"mode", mode}});
  }
}

TEST(CpuShape, Split) {
  const TestTensor x = TestTensor(DType::kF32, {4, 9, 3}).fill(1);
  expect_as_reference("split", {x}, {{"axis", 1}, {"sizes", std::vector<int64_t>{2, 3, 4}}}, 0, 3);
  expect_as_reference("split", {x.scrambled()}, {{"axis", 0}}, 0, 2);
}

TEST(CpuGather, BadIndexIsAnErrorThatNamesIt) {
  TestInputs inputs = {TestTensor(DType::kF32, {4, 3}), TestTensor(DType::kI64, {2}, {1, 4})};
  const Prepared prepared = prepare_cpu("gather", inputs);
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[gather] index 4 is out of range for axis 0 of extent 4");
}

TEST(CpuGather, EmbeddingRows) {
  for (DType index : {DType::kI32, DType::kI64})
    expect_as_reference("gather", {TestTensor(DType::kF32, {300, 64}).fill(1),
                                   TestTensor(index, {4, 70}).fill(2, -300, 299)});
}

}  // namespace
}  // namespace anymps::testing
