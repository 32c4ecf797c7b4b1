// SPDX-License-Identifier: Apache-2.0
// Copies between layouts: pixels and planes, lines of a few bytes, elements that come several
// times. `expected` walks the elements one by one.
#include "drivers/cpu/common/copy.h"

#include "support/tensor.h"

namespace anymps::testing {
namespace {

// `from` over `shape` with the strides; the result is dense but for `to`, if there is one.
void expect_copied(DType dtype, const Shape& shape, const Strides& from,
                   std::optional<Strides> to = std::nullopt) {
  TensorDesc source(dtype, shape), target(dtype, shape);
  source.strides = from;
  if (to) target.strides = *to;
  SCOPED_TRACE(to_string(source) + " to " + to_string(target));
  TestTensor x(source), y(target);
  const size_t size = size_of(dtype);
  auto* bytes = static_cast<uint8_t*>(x.ptr());
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * from[i];
  for (size_t i = 0; i < (static_cast<size_t>(last) + 1) * size; ++i)
    bytes[i] = static_cast<uint8_t>(i * 37 + i / 251 + 1);
  cpu::StridedCopy(size, shape, target.strides, from).run(y.ptr(), x.ptr());
  EXPECT_TRUE(y.guards_intact());
  int64_t wrong = 0;
  for_each_index(shape, [&](const Shape& index) {
    int64_t at = 0, there = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      at += index[i] * from[i], there += index[i] * target.strides[i];
    const auto offset = [&](int64_t element) { return element * static_cast<int64_t>(size); };
    wrong +=
        std::memcmp(bytes + offset(at), static_cast<uint8_t*>(y.ptr()) + offset(there), size) != 0;
  });
  EXPECT_EQ(wrong, 0);
}

constexpr DType kSizes[] = {DType::kI8, DType::kF16, DType::kF32, DType::kF64, DType::kC128};

TEST(CpuCopy, PlanesAndPixels) {
  for (const DType dtype : kSizes)
    for (const int64_t planes : {1, 2, 3, 4, 5})
      for (const int64_t pixels : {1, 2, 7, 16, 33, 100, 4097, 9000}) {
        expect_copied(dtype, {pixels, planes}, {1, pixels});      // planes to pixels
        expect_copied(dtype, {pixels, planes}, {1, pixels + 3});  // with gaps between planes
        expect_copied(dtype, {planes, pixels}, {1, planes});      // pixels to planes
        expect_copied(dtype, {planes, pixels}, {1, planes + 1});  // of more than there are
        expect_copied(dtype, {3, planes, pixels}, {planes * pixels, 1, planes});
        expect_copied(dtype, {3, pixels, planes}, {planes * pixels, 1, pixels});
        expect_copied(dtype, {planes, pixels}, {1, planes}, Strides{pixels + 5, 1});
        expect_copied(dtype, {pixels, planes}, {1, pixels}, Strides{planes + 2, 1});
      }
}

TEST(CpuCopy, LinesOfAFewBytes) {
  for (const DType dtype : kSizes)
    for (int64_t columns = 1; columns <= 40; ++columns) {
      expect_copied(dtype, {5, 3, columns}, {columns * 4, columns + 1, 1});
      expect_copied(dtype, {5, 3, columns}, {columns, 0, 1});
      expect_copied(dtype, {5, 3, columns}, {columns, columns * 5, 1});
      expect_copied(dtype, {5, 3, columns}, {3 * columns, columns, 1},
                    Strides{columns * 4 + 1, columns + 1, 1});
    }
}

TEST(CpuCopy, StepsAndRepeats) {
  for (const DType dtype : kSizes)
    for (const int64_t columns : {1, 2, 3, 15, 16, 17, 33, 64, 100})
      for (const int64_t step : {0, 2, 3, 4, 5}) {
        expect_copied(dtype, {7, columns}, {columns * step + 1, step});
        expect_copied(dtype, {7, columns, 2}, {columns, 1, 0});  // each element twice
        expect_copied(dtype, {7, columns, 4}, {columns, 1, 0});
        expect_copied(dtype, {3, columns, 2, 3}, {columns, 1, 0, 0});
        expect_copied(dtype, {7, columns}, {columns, 1}, Strides{columns * 3, 3});
      }
}

TEST(CpuCopy, Transpositions) {
  for (const DType dtype : kSizes)
    for (const int64_t rows : {5, 8, 9, 16, 31, 64, 65, 130})
      for (const int64_t columns : {5, 8, 9, 16, 33, 70})
        expect_copied(dtype, {2, rows, columns}, {rows * columns, 1, rows});
}

// Empty, and so large that threads share it.
TEST(CpuCopy, Ends) {
  expect_copied(DType::kF32, {0, 3}, {1, 0});
  expect_copied(DType::kF32, {}, {});
  expect_copied(DType::kF32, {3, 300000}, {1, 3});
  expect_copied(DType::kF32, {300000, 3}, {1, 300000});
  expect_copied(DType::kF32, {100000, 2, 3}, {3, 300000, 1});
}

}  // namespace
}  // namespace anymps::testing
