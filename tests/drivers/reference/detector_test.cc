// SPDX-License-Identifier: Apache-2.0
// Detection heads; numbers by hand, from PaddlePaddle's formulas.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

// Boxes 0 and 1 overlap by 1/3 (of areas 4, 4 with 2 in common), 2 lies apart.
const TestTensor kBoxes(DType::kF32, {1, 3, 4}, {0, 0, 2, 2, 1, 0, 3, 2, 5, 5, 6, 6});
const TestTensor kScores(DType::kF32, {1, 2, 3}, {0.9, 0.8, 0.1, 0.2, 0.3, 0.7});

TEST(ReferenceDetector, MulticlassNms) {
  const auto found = run_reference_all(
      "multiclass_nms", {kBoxes, kScores},
      {{"nms_threshold", 0.3}, {"score_threshold", 0.15}, {"background_label", -1}});
  // Class 0: box 0 drops box 1. Class 1: 2, then 1, which drops 0.
  EXPECT_TRUE(same(
      found[0], f32({3, 6}, {0, 0.9, 0, 0, 2, 2, 1, 0.7, 5, 5, 6, 6, 1, 0.3, 1, 0, 3, 2}), 1e-6));
  EXPECT_EQ(found[1].values(), (Row{0, 2, 1}));
  EXPECT_EQ(found[2].values(), Row{3});
  const auto best =
      run_reference_all("multiclass_nms", {kBoxes, kScores},
                        {{"nms_threshold", 0.3}, {"background_label", 0}, {"keep_top_k", 1}});
  EXPECT_EQ(best[1].values(), Row{2});
}

TEST(ReferenceDetector, MatrixNms) {
  const auto found = run_reference_all("matrix_nms", {kBoxes, kScores},
                                       {{"score_threshold", 0.15}, {"background_label", -1}});
  // Box 1 of class 0 falls to 0.8 * (1 - 1/3), box 0 of class 1 to 0.2 * (1 - 1/3).
  EXPECT_TRUE(same(found[0], f32({5, 6}, {0, 0.9, 0, 0,           2, 2,           1, 0.7, 5, 5,
                                          6, 6,   0, 0.8 * 2 / 3, 1, 0,           3, 2,   1, 0.3,
                                          1, 0,   3, 2,           1, 0.2 * 2 / 3, 0, 0,   2, 2}),
                   1e-6));
  const auto gaussian = run_reference_all(
      "matrix_nms", {kBoxes, kScores},
      {{"score_threshold", 0.5}, {"background_label", 1}, {"use_gaussian", true}});
  EXPECT_NEAR(gaussian[0].values()[7], 0.8 * std::exp(-2.0 / 9), 1e-6);
}

TEST(ReferenceDetector, YoloBox) {
  // One cell of one anchor: everything 0 is the middle of the cell, and sigmoid is a half.
  const TestTensor x(DType::kF32, {1, 6, 1, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 0, -9, 0, 2});
  const auto found =
      run_reference_all("yolo_box", {x, indices({1, 2}, {64, 128})},
                        {{"anchors", Ints{16, 8}}, {"class_num", 1}, {"conf_thresh", 0.1}});
  // Cells of 64 x 64 pixels; the anchor is scaled by 128 / 64 and 64 / 32.
  EXPECT_TRUE(same(found[0], f32({1, 2, 4}, {32 - 16, 32 - 8, 32 + 16, 32 + 8, 0, 0, 0, 0}), 1e-6));
  EXPECT_TRUE(same(found[1], f32({1, 2, 1}, {0.25, 0}), 1e-6));
}

}  // namespace
}  // namespace anymps::testing
