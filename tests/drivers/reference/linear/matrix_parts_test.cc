// SPDX-License-Identifier: Apache-2.0
// Bands, diagonals, sequences and bit vectors; numbers by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kMatrix(DType::kF32, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

TEST(ReferenceMatrixParts, BandPart) {
  EXPECT_EQ(run_reference("band_part", {kMatrix}, {{"lower", 1}, {"upper", 0}}).values(),
            (Row{1, 0, 0, 0, 5, 6, 0, 0, 0, 10, 11, 0}));
  EXPECT_EQ(run_reference("band_part", {kMatrix}, {{"lower", 0}}).values(),
            (Row{1, 2, 3, 4, 0, 6, 7, 8, 0, 0, 11, 12}));
  const TestTensor lower = TestTensor::of<int64_t>({}, {-1}),
                   upper = TestTensor::of<int64_t>({}, {1});
  EXPECT_EQ(run_reference("band_part", {kMatrix, lower, upper}).values(),
            (Row{1, 2, 0, 0, 5, 6, 7, 0, 9, 10, 11, 12}));
}

TEST(ReferenceMatrixParts, EyeLike) {
  const TestTensor y = run_reference("eye_like", {kMatrix}, {{"k", 1}, {"dtype", DType::kI32}});
  EXPECT_EQ(y.dtype(), DType::kI32);
  EXPECT_EQ(y.values(), (Row{0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(run_reference("eye_like", {kMatrix}, {{"k", -2}}).values(),
            (Row{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(ReferenceMatrixParts, ReverseSequence) {
  const TestTensor lengths = TestTensor::of<int64_t>({3}, {1, 3, 4});
  EXPECT_EQ(
      run_reference("reverse_sequence", {kMatrix, lengths}, {{"time_axis", 1}, {"batch_axis", 0}})
          .values(),
      (Row{1, 2, 3, 4, 7, 6, 5, 8, 12, 11, 10, 9}));
  EXPECT_EQ(
      error_of([&] {
        run_reference("reverse_sequence", {kMatrix, TestTensor::of<int64_t>({4}, {1, 1, 4, 1})});
      }),
      "[reverse_sequence] length 4 of sequence 2 is not in [0, 3]");
}

TEST(ReferenceMatrixParts, HammingDistance) {
  const TestTensor a = TestTensor::of<uint8_t>({2, 1, 2}, {0, 255, 3, 1});
  const TestTensor b = TestTensor::of<uint8_t>({3, 2}, {0, 0, 1, 254, 3, 1});
  const TestTensor y = run_reference("hamming_distance", {a, b});
  EXPECT_EQ(y.dtype(), DType::kU32);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.values(), (Row{8, 2, 9, 3, 9, 0}));
}

}  // namespace
}  // namespace anymps::testing
