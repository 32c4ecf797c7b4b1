// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/tensor.h"
#include "support/typed_infer.h"

namespace anymps::testing {
namespace {

std::string sliced(const Dim& extent, const Dim& start, const Dim& end, int64_t step = 1) {
  return infer("slice", {f32({extent}), vec({start}), vec({end}), std::nullopt, vec({step})})
      .shape[0]
      .str();
}

TEST(Slice, NumbersAreClampedAsInNumpy) {
  EXPECT_EQ(sliced(10, 2, 5), "3");
  EXPECT_EQ(sliced(10, -3, INT64_MAX), "3");
  EXPECT_EQ(sliced(10, -20, 4), "4");
  EXPECT_EQ(sliced(10, 8, 100, 3), "1");
  EXPECT_EQ(sliced(10, 5, 2), "0");
  EXPECT_EQ(sliced(10, 9, 0, -2), "5");
  EXPECT_EQ(sliced(10, INT64_MAX, INT64_MIN, -1), "10");
  EXPECT_EQ(sliced(10, -1, -3, -1), "2");
  EXPECT_EQ(sliced(0, 0, 5), "0");
  EXPECT_EQ(sliced(0, -1, INT64_MIN, -1), "0");
}

TEST(Slice, NothingOfASymbol) {
  EXPECT_EQ(sliced(S, 2, 1), "0");
  EXPECT_EQ(sliced(S, 1, 1), "0");
  EXPECT_EQ(sliced(S, 1, 5, -1), "0");
  EXPECT_EQ(sliced(S, 7, 1, 3), "0");
  EXPECT_EQ(sliced(S, S, INT64_MAX), "0");
  EXPECT_EQ(sliced(S, S, S), "0");
}

TEST(Slice, SymbolsStayReadable) {
  EXPECT_EQ(sliced(S, 0, INT64_MAX), "S");
  EXPECT_EQ(sliced(S, 0, INT32_MAX), "S");
  EXPECT_EQ(sliced(S, 1, INT64_MAX), "S-1");
  EXPECT_EQ(sliced(S, 0, -1), "S-1");
  EXPECT_EQ(sliced(S, -1, INT64_MAX), "1");
  EXPECT_EQ(sliced(S, 0, 1), "1");
  EXPECT_EQ(sliced(S, 0, S), "S");
  EXPECT_EQ(sliced(S, INT64_MAX, INT64_MIN, -1), "S");
  EXPECT_EQ(sliced(S, 0, INT64_MAX, 2), "(S+1)//2");
  EXPECT_EQ(sliced(S, 0, 8), "min(8,S)");
  EXPECT_EQ(sliced(512, 0, S), "min(S,512)");
}

TEST(Slice, OtherAxesAreUntouched) {
  EXPECT_EQ(inferred("slice", {f32({N, S, 3})},
                     {{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{-1}}}),
            "f32[N, S, 2]");
  // What is not known yet makes only its own axes unknown.
  const ValueType part = infer("slice", {f32({N, S, 3}), i64({1}), i64({1})}, {{"axes", Ints{1}}});
  EXPECT_EQ(part.shape[0], N);
  EXPECT_FALSE(part.shape[1] == S);
  EXPECT_EQ(part.shape[2], Dim(3));
}

TEST(Slice, Content) {
  EXPECT_EQ(content("slice", {vec({N, S, 768})}, {{"starts", Ints{0}}, {"ends", Ints{2}}}),
            "[N, S]");
  EXPECT_EQ(content("slice", {vec({N, S, 768}), vec({-1}), vec({INT64_MAX})}), "[768]");
  EXPECT_EQ(content("slice",
                    {vec({1, 2, 3, 4}), vec({INT64_MAX}), vec({INT64_MIN}), vec({0}), vec({-2})}),
            "[4, 2]");
  EXPECT_EQ(content("slice", {vec({1, 2, 3}), i64({1}), vec({2})}), "-");
}

TEST(Slice, Errors) {
  auto error = [](const NamedAttrs& attrs) {
    return error_of([&] { infer("slice", {f32({4, 5})}, attrs); });
  };
  EXPECT_EQ(error({{"starts", Ints{0}}, {"ends", Ints{1}}, {"steps", Ints{0}}}),
            "[slice] the step along axis 0 is 0 (node \"n\")");
  EXPECT_EQ(error({{"starts", Ints{0}}, {"ends", Ints{1}}, {"axes", Ints{2}}}),
            "[slice] axis 2 is out of range for rank 2 (node \"n\")");
  EXPECT_EQ(error({{"starts", Ints{0}}, {"ends", Ints{1, 2}}}),
            "[slice] 1 starts, 2 ends, 1 axes and 0 steps do not go together (node \"n\")");
  EXPECT_EQ(error({{"starts", Ints{0, 0}}, {"ends", Ints{1, 1}}, {"axes", Ints{1, -1}}}),
            "[slice] axis -1 is given twice (node \"n\")");
  EXPECT_EQ(error({{"starts", Ints{0, 0, 0}}, {"ends", Ints{1, 1, 1}}}),
            "[slice] 3 starts for an input of rank 2 (node \"n\")");
}

TEST(Split, Shapes) {
  auto parts = [](const Dims& shape, const NamedAttrs& attrs, size_t outputs) {
    std::string text;
    for (const ValueType& type : infer_all("split", {f32(shape)}, attrs, outputs))
      text += to_string(type.shape);
    return text;
  };
  EXPECT_EQ(parts({N, 6}, {{"axis", 1}}, 3), "[N, 2][N, 2][N, 2]");
  EXPECT_EQ(parts({7}, {}, 3), "[3][3][1]");
  EXPECT_EQ(parts({2}, {}, 3), "[1][1][0]");
  EXPECT_EQ(parts({N, 6}, {{"axis", -1}, {"sizes", Ints{1, 5}}}, 2), "[N, 1][N, 5]");
  EXPECT_EQ(parts({N * 2}, {}, 2), "[N][N]");
  EXPECT_EQ(parts({S}, {}, 2), "[(S+1)//2][S-((S+1)//2)]");
}

TEST(Split, Errors) {
  auto error = [](const NamedAttrs& attrs, size_t outputs) {
    return error_of([&] { infer_all("split", {f32({4, 5})}, attrs, outputs); });
  };
  EXPECT_EQ(error({{"sizes", Ints{1, 2}}}, 2),
            "[split] sizes [1, 2] do not add up to the extent 4 of axis 0 (node \"n\")");
  EXPECT_EQ(error({{"sizes", Ints{5, -1}}}, 2), "[split] size -1 is negative (node \"n\")");
  EXPECT_EQ(error({{"sizes", Ints{4}}}, 2), "[split] 1 sizes for 2 outputs (node \"n\")");
  EXPECT_EQ(error({{"axis", 2}}, 2), "[split] axis 2 is out of range for rank 2 (node \"n\")");
}

TEST(Split, Content) {
  const auto parts = infer_all("split", {vec({N, S, 3})}, {{"sizes", Ints{1, 2}}}, 2);
  EXPECT_EQ(to_string(*parts[0].content), "[N]");
  EXPECT_EQ(to_string(*parts[1].content), "[S, 3]");
  const auto equal = infer_all("split", {vec({N, S, 3})}, {}, 2);
  EXPECT_EQ(to_string(*equal[1].content), "[3]");
}

TEST(Pad, Shapes) {
  EXPECT_EQ(inferred("pad", {f32({N, 4})}, {{"pads", Ints{0, 1, 0, 2}}}), "f32[N, 7]");
  EXPECT_EQ(inferred("pad", {f32({N, 4}), vec({1, -1, 1, -2})}), "f32[(N+1)+1, 1]");
  EXPECT_EQ(infer("pad", {f32({N, 4}), i64({4})}).shape.size(), 2u);
  EXPECT_EQ(inferred("pad", {f32({3})}), "f32[3]");
}

TEST(Pad, Errors) {
  auto error = [](const Dims& shape, const Ints& pads, const char* mode) {
    return error_of([&] { infer("pad", {f32(shape)}, {{"pads", pads}, {"mode", mode}}); });
  };
  EXPECT_EQ(error({3}, {1}, "constant"),
            "[pad] 1 pads for an input of rank 1: 2 are needed (node \"n\")");
  EXPECT_EQ(error({3}, {0, 3}, "reflect"),
            "[pad] mode reflect pads axis 0 by 3, its extent 3 allows 2 (node \"n\")");
  EXPECT_EQ(error({3}, {4, 0}, "symmetric"),
            "[pad] mode symmetric pads axis 0 by 4, its extent is 3 (node \"n\")");
  EXPECT_EQ(error({0}, {1, 0}, "edge"), "[pad] mode edge cannot pad the empty axis 0 (node \"n\")");
  EXPECT_EQ(error({3}, {-2, -2}, "constant"),
            "[pad] pads -2 and -2 crop more than the extent 3 of axis 0 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("pad", {f32({3}), vec({0, 1}), f32({2})});
            }),
            "[pad] value must be a scalar, it has the shape [2] (node \"n\")");
}

TEST(Trilu, NeedsAMatrix) {
  EXPECT_EQ(inferred("trilu", {f32({N, S, S})}), "f32[N, S, S]");
  EXPECT_EQ(error_of([] { infer("trilu", {f32({3})}); }),
            "[trilu] input must have rank 2 or more, it has rank 1 (node \"n\")");
}

TEST(Reverse, ChecksItsAxes) {
  EXPECT_EQ(inferred("reverse", {f32({N, 2})}, {{"axes", Ints{0}}}), "f32[N, 2]");
  EXPECT_EQ(error_of([] {
              infer("reverse", {f32({3})}, {{"axes", Ints{1}}});
            }),
            "[reverse] axis 1 is out of range for rank 1 (node \"n\")");
}

}  // namespace
}  // namespace anymps::testing
