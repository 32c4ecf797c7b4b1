// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;

TEST(SdpaInference, Shapes) {
  EXPECT_EQ(inferred("sdpa", {Dims{2, 3, 5, 8}, Dims{2, 3, 7, 8}, Dims{2, 3, 7, 4}, Dims{5, 7}}),
            "f32[2, 3, 5, 4]");
  EXPECT_EQ(inferred("sdpa", {Dims{sym("B"), 3, sym("S"), 8}, Dims{sym("B"), 3, sym("T"), 8},
                              Dims{sym("B"), 3, sym("T"), 4}, Dims{sym("B"), 1, 1, sym("T")}}),
            "f32[B, 3, S, 4]");
}

TEST(SdpaInference, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              inferred("sdpa", {Dims{2, 3, 5}, Dims{2, 3, 5}, Dims{2, 3, 5}});
            }),
            "[sdpa] input 'q' has shape [2, 3, 5], must have rank 4");
  EXPECT_EQ(error_of([] {
              inferred("sdpa", {Dims{2, 3, 5, 8}, Dims{2, 3, 7, 9}, Dims{2, 3, 7, 4}});
            }),
            "[sdpa] input 'k' has shape [2, 3, 7, 9], must be [2, 3, 7, 8]");
  EXPECT_EQ(error_of([] {
              inferred("sdpa", {Dims{2, 3, 5, 8}, Dims{2, 3, 7, 8}, Dims{2, 3, 6, 4}});
            }),
            "[sdpa] input 'v' has shape [2, 3, 6, 4], must be [2, 3, 7, 4]");
  EXPECT_EQ(error_of([] {
              inferred("sdpa", {Dims{2, 3, 5, 8}, Dims{2, 3, 7, 8}, Dims{2, 3, 7, 4}, Dims{7, 5}});
            }),
            "[sdpa] input 'mask' has shape [7, 5], which does not broadcast to [2, 3, 5, 7]");
}

}  // namespace
}  // namespace anymps
