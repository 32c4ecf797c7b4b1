// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;

TEST(NormInference, Shapes) {
  EXPECT_EQ(inferred("batch_norm", {Dims{sym("N"), 3, 5}, Dims{3}, Dims{3}}), "f32[N, 3, 5]");
  EXPECT_EQ(inferred("batch_norm", {Dims{2, 5, 3}, Dims{3}, Dims{3}}, {{"axis", -1}}),
            "f32[2, 5, 3]");
  EXPECT_EQ(inferred("layer_norm", {Dims{sym("N"), 4, 5}, Dims{4, 5}}, {{"axis", 1}}, 3),
            "f32[N, 4, 5]; f32[N, 1, 1]; f32[N, 1, 1]");
  EXPECT_EQ(inferred("rms_norm", {Dims{2, sym("D")}, Dims{8}}), "f32[2, D]");
  EXPECT_EQ(inferred("group_norm", {Dims{2, 6, sym("H")}, Dims{6}}, {{"groups", 3}}),
            "f32[2, 6, H]");
  EXPECT_EQ(inferred("instance_norm", {Dims{2, sym("C"), 4}}), "f32[2, C, 4]");
  EXPECT_EQ(inferred("lrn", {Dims{2, 6, 4}}, {{"size", 3}}), "f32[2, 6, 4]");
}

TEST(NormInference, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              inferred("batch_norm", {Dims{2, 3}, Dims{3}, Dims{4}});
            }),
            "[batch_norm] input 'variance' has shape [4], must be [3]");
  EXPECT_EQ(error_of([] {
              inferred("batch_norm", {Dims{2}, Dims{2}, Dims{2}});
            }),
            "[batch_norm] axis 1 is out of range for rank 1");
  EXPECT_EQ(error_of([] {
              inferred("layer_norm", {Dims{2, 3}, Dims{2}});
            }),
            "[layer_norm] input 'gamma' has shape [2], which does not broadcast to [2, 3]");
  EXPECT_EQ(error_of([] {
              inferred("rms_norm", {Dims{2, 3}}, {{"epsilon", -1.0}});
            }),
            "[rms_norm] epsilon is -1, must not be negative");
  EXPECT_EQ(error_of([] {
              inferred("group_norm", {Dims{2, 5, 3}}, {{"groups", 2}});
            }),
            "[group_norm] 5 channels cannot be divided into 2 groups");
  EXPECT_EQ(error_of([] { inferred("instance_norm", {Dims{2}}); }),
            "[instance_norm] x has shape [2], must have a batch and a channel axis");
  EXPECT_EQ(error_of([] {
              inferred("lrn", {Dims{2, 5}}, {{"size", 0}});
            }),
            "[lrn] size is 0, must be at least 1");
}

}  // namespace
}  // namespace anymps
