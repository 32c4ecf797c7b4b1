// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;
using Ints = std::vector<int64_t>;

TEST(PoolInference, Extents) {
  EXPECT_EQ(inferred("max_pool", {Dims{2, 3, 8, 9}},
                     {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}, 2),
            "f32[2, 3, 4, 4]; i64[2, 3, 4, 4]");
  EXPECT_EQ(inferred("avg_pool", {Dims{2, 8, 9, 3}},
                     {{"kernel", Ints{3, 3}}, {"layout", "channels_last"}}),
            "f32[2, 6, 7, 3]");
}

TEST(PoolInference, CeilModeDropsWindowsThatStartInThePadding) {
  EXPECT_EQ(inferred("max_pool", {Dims{1, 1, 7}},
                     {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", true}}),
            "f32[1, 1, 4]");
  // ceil((6 + 2 - 2) / 3) + 1 = 3 windows start at -1, 2, 5; with 5 elements the third starts at 5,
  // after the last.
  const NamedAttrs attrs{
      {"kernel", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", true}};
  EXPECT_EQ(inferred("max_pool", {Dims{1, 1, 6}}, attrs), "f32[1, 1, 3]");
  EXPECT_EQ(inferred("max_pool", {Dims{1, 1, 5}}, attrs), "f32[1, 1, 2]");
}

TEST(PoolInference, SymbolicExtents) {
  EXPECT_EQ(inferred("max_pool", {Dims{sym("N"), 3, sym("H"), 8}},
                     {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}),
            "f32[N, 3, H//2, 4]");
  EXPECT_EQ(inferred("lp_pool", {Dims{1, 3, sym("H")}},
                     {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"auto_pad", "same_upper"}}),
            "f32[1, 3, (H+1)//2]");
}

TEST(PoolInference, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              inferred("max_pool", {Dims{1, 3, 8, 8}}, {{"kernel", Ints{2}}});
            }),
            "[max_pool] x has shape [1, 3, 8, 8], but kernel has 1 entries: it must have one for "
            "each spatial axis");
  EXPECT_EQ(error_of([] {
              inferred("max_pool", {Dims{1, 3, 8}});
            }),
            "[max_pool] attribute 'kernel' is required");
  EXPECT_EQ(error_of([] {
              inferred("avg_pool", {Dims{1, 3, 8}}, {{"kernel", Ints{0}}});
            }),
            "[avg_pool] the kernel [0] must be positive");
  EXPECT_EQ(error_of([] {
              inferred("lp_pool", {Dims{1, 3, 8}}, {{"kernel", Ints{2}}, {"p", 0}});
            }),
            "[lp_pool] p is 0, must be at least 1");
  EXPECT_NE(error_of([] {
              inferred("avg_pool", {Dims{1, 3, 4}}, {{"kernel", Ints{5}}});
            }).find("does not fit"),
            std::string::npos);
}

}  // namespace
}  // namespace anymps
