// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

TEST(ResizeInference, Shapes) {
  EXPECT_EQ(inferred("resize", {Dims{1, 2, 4, 5}}, {{"sizes", Ints{1, 2, 8, 3}}}),
            "f32[1, 2, 8, 3]");
  // The product is rounded to float first: 10 * 0.7 is 7, not 6.99….
  EXPECT_EQ(inferred("resize", {Dims{10, 10}}, {{"scales", Floats{0.7f, 0.6f}}}), "f32[7, 6]");
  EXPECT_EQ(
      inferred("resize", {Dims{sym("N"), sym("H"), sym("W")}}, {{"scales", Floats{1, 2, 0.5}}}),
      "f32[N, " + (sym("H") * 2).str() + ", floor(W*0.5)]");
}

TEST(ResizeInference, SizesFromAnInput) {
  const Op& op = get_op("resize");
  const ValueType x{DType::kF32, true, {1, sym("H")}, std::nullopt};
  const ValueType known{DType::kI64, true, {2}, Dims{1, sym("H") * 3}};
  const ValueType unknown{DType::kI64, true, {2}, std::nullopt};
  const Attrs attrs(op, {});
  EXPECT_EQ(InferContext::run(op, attrs, {&x, &known}, 1, "")[0].shape, (Dims{1, sym("H") * 3}));
  const Dims fresh = InferContext::run(op, attrs, {&x, &unknown}, 1, "")[0].shape;
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_FALSE(fresh[0].known());
}

TEST(ResizeInference, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              inferred("resize", {Dims{1, 2}});
            }),
            "[resize] needs either sizes or scales, once, as an input or an attribute");
  EXPECT_EQ(error_of([] {
              inferred("resize", {Dims{1, 2}}, {{"sizes", Ints{1, 2}}, {"scales", Floats{1, 2}}});
            }),
            "[resize] needs either sizes or scales, once, as an input or an attribute");
  EXPECT_EQ(error_of([] {
              inferred("resize", {Dims{1, 2}}, {{"sizes", Ints{1}}});
            }),
            "[resize] sizes has 1 entries, must have one for each of 2 axes");
  EXPECT_EQ(error_of([] {
              inferred("resize", {Dims{1, 2}}, {{"scales", Floats{1, 0}}});
            }),
            "[resize] scales has the entry 0, must be positive");
  EXPECT_EQ(error_of([] {
              inferred("resize", {Dims{1, 0}}, {{"sizes", Ints{1, 4}}});
            }),
            "[resize] cannot resize axis 1 from nothing to 4 elements");
  EXPECT_EQ(error_of([] {
              inferred("resize", {Dims{1, 2}}, {{"sizes", Ints{1, -4}}});
            }),
            "[resize] sizes has the entry -4");
  EXPECT_EQ(
      error_of([] {
        inferred("resize", {Dims{2}}, {{"sizes", Ints{4}}, {"mode", "linear"}}, 1, DType::kBool);
      }),
      "[resize] mode linear cannot be used on bool");
}

}  // namespace
}  // namespace anymps
