// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;
using testing::SymbolicShapes;
using Ints = std::vector<int64_t>;

TEST(ConvInference, Extents) {
  EXPECT_EQ(inferred("conv", {Dims{2, 3, 32}, Dims{8, 3, 5}}), "f32[2, 8, 28]");
  EXPECT_EQ(inferred("conv", {Dims{1, 3, 224, 224}, Dims{64, 3, 7, 7}, Dims{64}},
                     {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}}),
            "f32[1, 64, 112, 112]");
  EXPECT_EQ(inferred("conv", {Dims{1, 4, 9, 9, 9}, Dims{4, 1, 3, 3, 3}},
                     {{"groups", 4}, {"dilations", Ints{1, 2, 4}}}),
            "f32[1, 4, 7, 5, 1]");
  EXPECT_EQ(inferred("conv", {Dims{1, 6, 7, 4}, Dims{3, 2, 2, 6}},
                     {{"layout", "channels_last"}, {"weights_layout", "*IO"}, {"groups", 2}}),
            "f32[1, 4, 6, 6]");
  EXPECT_EQ(inferred("conv", {Dims{1, 1, 7, 8}, Dims{1, 1, 3, 3}},
                     {{"auto_pad", "same_lower"}, {"strides", Ints{2, 3}}}),
            "f32[1, 1, 4, 3]");
}

TEST(ConvInference, SymbolicExtents) {
  const SymbolicShapes in{Dims{sym("N"), 3, sym("H"), sym("W")}, Dims{8, 3, 3, 3}};
  // Padding that keeps the extent leaves the symbol as it is, so that a residual matches.
  EXPECT_EQ(inferred("conv", in, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 2}}}),
            "f32[N, 8, H, (W+1)//2]");
  EXPECT_EQ(inferred("conv", in, {{"auto_pad", "same_upper"}, {"strides", Ints{1, 2}}}),
            "f32[N, 8, H, (W+1)//2]");
  EXPECT_EQ(inferred("conv", in), "f32[N, 8, H-2, W-2]");
  EXPECT_EQ(inferred("conv", {Dims{1, sym("C"), 5, 5}, Dims{4, 3, 3, 3}}), "f32[1, 4, 3, 3]");
}

TEST(ConvInference, SaysWhatIsWrong) {
  const auto message = [](const SymbolicShapes& in, const NamedAttrs& attrs) {
    return error_of([&] { inferred("conv", in, attrs); });
  };
  const SymbolicShapes in{Dims{1, 3, 8, 8}, Dims{4, 3, 3, 3}};
  EXPECT_EQ(message({Dims{1, 3}, Dims{4, 3}}, {}),
            "[conv] input 'x' has shape [1, 3], must have rank 3 to 5");
  EXPECT_EQ(message({Dims{1, 3, 8, 8}, Dims{4, 3, 3}}, {}),
            "[conv] input 'w' has shape [4, 3, 3], must have rank 4");
  EXPECT_EQ(message({Dims{1, 5, 8, 8}, Dims{4, 3, 3, 3}}, {}),
            "[conv] x [1, 5, 8, 8] has 5 channels, but w [4, 3, 3, 3] with 1 groups takes 3");
  EXPECT_EQ(message(in, {{"groups", 2}}),
            "[conv] the 3 input channels cannot be divided into 2 groups");
  EXPECT_EQ(message({Dims{1, 6, 8, 8}, Dims{4, 2, 3, 3}}, {{"groups", 3}}),
            "[conv] the 4 output channels cannot be divided into 3 groups");
  EXPECT_EQ(message(in, {{"groups", 0}}), "[conv] groups is 0, must be at least 1");
  EXPECT_EQ(message(in, {{"strides", Ints{1, 0}}}),
            "[conv] strides has the entry 0, must be at least 1");
  EXPECT_EQ(message(in, {{"dilations", Ints{1, -1}}}),
            "[conv] dilations has the entry -1, must be at least 1");
  EXPECT_EQ(message(in, {{"strides", Ints{1, 1, 1}}}),
            "[conv] strides has 3 entries, must have one for each of 2 spatial axes");
  EXPECT_EQ(message(in, {{"pads", Ints{1, 1}}}),
            "[conv] pads has 2 entries, must have a begin and an end for each of 2 spatial axes");
  EXPECT_EQ(message(in, {{"pads", Ints{1, 1, -1, 0}}}),
            "[conv] pads has the entry -1, must not be negative");
  EXPECT_EQ(message(in, {{"dilations", Ints{1, 4}}}),
            "[conv] a window that spans 9 elements does not fit into spatial axis 1 of extent 8 "
            "with 0 elements of padding");
  EXPECT_EQ(message({in[0], in[1], Dims{3}}, {}), "[conv] input 'bias' has shape [3], must be [4]");
  EXPECT_EQ(message({in[0], in[1], std::nullopt, Dims{1, 4, 8, 8}}, {}),
            "[conv] input 'residual' has shape [1, 4, 8, 8], must be [1, 4, 6, 6]");
  EXPECT_EQ(message({in[0], Dims{4, 3, 0, 3}}, {}), "[conv] the kernel [0, 3] must be positive");
  EXPECT_EQ(error_of([&] {
              inferred("conv", in, {{"activation", "gelu"}}, 1, DType::kI32);
            }),
            "[conv] activation 'gelu' needs floats, the inputs are i32");
  EXPECT_NE(message(in, {{"pads", Ints{INT64_MAX, INT64_MAX, 1, 1}}}).find("overflows"),
            std::string::npos);
}

TEST(ConvTransposeInference, Extents) {
  EXPECT_EQ(
      inferred(
          "conv_transpose", {Dims{1, 3, 4, 5}, Dims{3, 2, 3, 3}},
          {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 0}}, {"output_padding", Ints{1, 0}}}),
      "f32[1, 2, 8, 7]");
  EXPECT_EQ(inferred("conv_transpose", {Dims{1, 4, 4, 3}, Dims{3, 2, 3, 3}},
                     {{"layout", "channels_last"}, {"groups", 3}}),
            "f32[1, 6, 6, 6]");
  EXPECT_EQ(inferred("conv_transpose", {Dims{1, 1, 3, 3}, Dims{1, 2, 3, 3}},
                     {{"output_shape", Ints{10, 8}}}),
            "f32[1, 2, 10, 8]");
  EXPECT_EQ(inferred("conv_transpose", {Dims{1, 3, sym("H")}, Dims{3, 2, 4}},
                     {{"auto_pad", "same_upper"}, {"strides", Ints{2}}}),
            "f32[1, 2, " + (sym("H") * 2).str() + "]");
  EXPECT_EQ(inferred("conv_transpose", {Dims{1, 3, sym("H")}, Dims{3, 2, 4}},
                     {{"pads", Ints{1, 1}}, {"strides", Ints{2}}}),
            "f32[1, 2, " + (sym("H") * 2).str() + "]");
}

TEST(ConvTransposeInference, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              inferred("conv_transpose", {Dims{1, 3, 4}, Dims{2, 2, 3}});
            }),
            "[conv_transpose] x [1, 3, 4] has 3 channels, but w [2, 2, 3] takes 2");
  EXPECT_EQ(error_of([] {
              inferred("conv_transpose", {Dims{1, 3, 1}, Dims{3, 2, 3}}, {{"pads", Ints{2, 2}}});
            }),
            "[conv_transpose] the paddings 2 and 2 of spatial axis 0 are more than its extent 3");
}

TEST(ConvCost, CountsMultiplyAdds) {
  const Op& op = get_op("conv");
  EXPECT_EQ(op.cost(Attrs(op, {{"groups", 2}}), {{1, 4, 5, 5}, {6, 2, 3, 3}}, {{1, 6, 3, 3}}),
            2.0 * 6 * 9 * 2 * 9);
}

}  // namespace
}  // namespace anymps
