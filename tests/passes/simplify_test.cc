// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct Simplify : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 4});
  Value* start = graph.add("exp", {x}, {}, "start");
  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  // `y` is rewritten to what `text` says; an empty text: to `start` itself.
  void expect(Value* y, const std::string& text = "") {
    Value* end = graph.add("neg", {y}, {}, "end");
    graph.set_outputs({end});
    EXPECT_GE(rewrite(graph, {"simplify"}), 1);
    const char* gone = "\n%start: f32[N, 3, 4] = exp(%x)\n%end: f32[N, 3, 4] = neg(%start)\n";
    EXPECT_EQ(nodes_of(graph), text.empty() ? gone : text);
  }
  void expect_kept(Value* y) {
    graph.set_outputs({graph.add("neg", {y}, {}, "end")});
    EXPECT_EQ(rewrite(graph, {"simplify"}), 0) << to_text(graph);
  }
};

TEST_F(Simplify, Identity) { expect(graph.add("identity", {start})); }
TEST_F(Simplify, TimesOne) { expect(graph.add("mul", {number(1), start})); }
TEST_F(Simplify, TimesATensorOfOnes) {
  expect(graph.add("mul", {start, graph.constant(Constant::of<float>({4}, {1, 1, 1, 1}))}));
}
TEST_F(Simplify, PlusZero) { expect(graph.add("add", {start, number(0)})); }
TEST_F(Simplify, MinusZero) { expect(graph.add("sub", {start, number(0)})); }
TEST_F(Simplify, OverOne) { expect(graph.add("div", {start, number(1)})); }
TEST_F(Simplify, ZeroMinusXIsNotX) { expect_kept(graph.add("sub", {number(0), start})); }
TEST_F(Simplify, OneThatBroadcastsStays) {
  expect_kept(graph.add("mul", {start, weights(graph, "ones", {2, 1, 1, 1}, 1, 1)}));
}
TEST_F(Simplify, Square) {
  expect(graph.add("pow", {start, number(2)}, {}, "p"), R"(
%start: f32[N, 3, 4] = exp(%x)
%p_1: f32[N, 3, 4] = square(%start)
%end: f32[N, 3, 4] = neg(%p_1)
)");
}
TEST_F(Simplify, AnOperandThatIsFilledIsItsValue) {
  Value* filled = graph.add("fill", {graph.ints({3, 4}), number(2)}, {}, "filled");
  expect(graph.add("sub", {filled, start}, {}, "y"), R"(
%start: f32[N, 3, 4] = exp(%x)
%y: f32[N, 3, 4] = sub(%const_1, %start)
%end: f32[N, 3, 4] = neg(%y)
)");
}
TEST_F(Simplify, AFilledOperandThatGivesTheShapeStays) {
  Value* filled = graph.add("fill", {nullptr, number(2)}, {{"shape", Ints{2, 3, 4}}}, "filled");
  expect_kept(graph.add("sub", {filled, weights(graph, "w", {4})}, {}, "y"));
}
TEST_F(Simplify, CastToItself) { expect(graph.add("cast", {start}, {{"dtype", DType::kF32}})); }

TEST_F(Simplify, AConditionThatIsTheSameEverywhere) {
  const std::vector<std::byte> no(3);
  Value* never = graph.constant(Constant::copy(DType::kBool, {3, 1}, no));
  expect(graph.add("where", {never, number(0), start}));
}
TEST_F(Simplify, AConditionThatIsNot) {
  Value* sometimes = graph.add("greater", {start, number(1)});
  expect_kept(graph.add("where", {sometimes, number(0), start}));
}
TEST_F(Simplify, TheSideThatBroadcastsStays) {
  expect_kept(graph.add("where", {graph.scalar(DType::kBool, 1), number(0), start}));
}

TEST_F(Simplify, TransposesThatCancel) {
  Value* t = graph.add("transpose", {start}, {{"perm", Ints{2, 0, 1}}});
  expect(graph.add("transpose", {t}, {{"perm", Ints{1, 2, 0}}}));
}
TEST_F(Simplify, TransposesThatDoNot) {
  Value* t = graph.add("transpose", {start}, {{"perm", Ints{2, 0, 1}}}, "t");
  expect(graph.add("transpose", {t}, {{"perm", Ints{2, 1, 0}}}, "u"), R"(
%start: f32[N, 3, 4] = exp(%x)
%u_1: f32[3, N, 4] = transpose(%start) {perm=[1, 0, 2]}
%end: f32[3, N, 4] = neg(%u_1)
)");
}
TEST_F(Simplify, TransposeOfAnAxisOfOne) {
  Value* pooled = graph.add("reduce_mean", {start}, {{"axes", Ints{2}}}, "pooled");
  expect(graph.add("transpose", {pooled}, {{"perm", Ints{0, 2, 1}}}, "t"), R"(
%start: f32[N, 3, 4] = exp(%x)
%pooled: f32[N, 3, 1] = reduce_mean(%start) {axes=[2]}
%t_1: f32[N, 1, 3] = reshape(%pooled) {shape=[0, 1, 3]}
%end: f32[N, 1, 3] = neg(%t_1)
)");
}
TEST_F(Simplify, ReshapesBecomeOne) {
  Value* flat = graph.add("flatten", {start}, {}, "flat");
  Value* wide = graph.add("unsqueeze", {flat}, {{"axes", Ints{1}}}, "wide");
  expect(graph.add("reshape", {wide}, {{"shape", Ints{0, 2, 6}}}, "r"), R"(
%start: f32[N, 3, 4] = exp(%x)
%r_1: f32[N, 2, 6] = reshape(%start) {shape=[0, 2, 6]}
%end: f32[N, 2, 6] = neg(%r_1)
)");
}
TEST_F(Simplify, ReshapeToTheSameShape) {
  expect(graph.add("reshape", {start}, {{"shape", Ints{0, 3, -1}}}));
}
TEST_F(Simplify, AComputedShapeThatIsKnown) {
  Value* batch = graph.add("shape", {x}, {{"end", 1}}, "batch");
  Value* shape = graph.add("concat", {batch, graph.ints({12})}, {}, "shape");
  expect(graph.add("reshape", {start, shape}, {}, "r"), R"(
%start: f32[N, 3, 4] = exp(%x)
%r_1: f32[N, 12] = reshape(%start) {shape=[0, 12]}
%end: f32[N, 12] = neg(%r_1)
)");
}
TEST_F(Simplify, WholeSlice) {
  expect(graph.add("slice", {start},
                   {{"starts", Ints{0, 0}}, {"ends", Ints{3, 99}}, {"axes", Ints{1, 2}}}));
}
TEST_F(Simplify, ReversedSliceStays) {
  expect_kept(graph.add(
      "slice", {start},
      {{"starts", Ints{-1}}, {"ends", Ints{-99}}, {"axes", Ints{1}}, {"steps", Ints{-1}}}));
}
TEST_F(Simplify, PadByNothing) {
  expect(graph.add("pad", {start}, {{"pads", Ints{0, 0, 0, 0, 0, 0}}}));
}
TEST_F(Simplify, ShiftByAPadStays) {
  expect_kept(graph.add("pad", {start}, {{"pads", Ints{0, 0, 1, 0, 0, -1}}}));
}
TEST_F(Simplify, ConcatOfOne) { expect(graph.add("concat", {start}, {{"axis", 1}})); }
TEST_F(Simplify, ExpandToItself) { expect(graph.add("expand", {start}, {{"shape", Ints{3, 4}}})); }
TEST_F(Simplify, TileOnce) { expect(graph.add("tile", {start}, {{"repeats", Ints{1, 1, 1}}})); }

// What was computed and is known by now stands where other passes look for it.
TEST_F(Simplify, KnownIntegersBecomeAttributes) {
  Value* cut =
      graph.add("slice", {start, graph.ints({1}), graph.ints({3}), graph.ints({1})}, {}, "y");
  expect(cut, R"(
%start: f32[N, 3, 4] = exp(%x)
%y: f32[N, 2, 4] = slice(%start) {starts=[1], ends=[3], axes=[1]}
%end: f32[N, 2, 4] = neg(%y)
)");
}
TEST_F(Simplify, SomeKnownIntegers) {
  Value* open = graph.input("open", DType::kI64, {1});
  Value* cut = graph.add("slice", {start, open, graph.ints({3}), graph.ints({1})}, {}, "y");
  graph.set_outputs({cut});
  EXPECT_EQ(rewrite(graph, {"simplify"}), 1);
  EXPECT_NE(nodes_of(graph).find("slice(%start, %open) {ends=[3], axes=[1]}"), std::string::npos)
      << nodes_of(graph);
}
TEST_F(Simplify, AnEmptyListIsNotTheDefault) {
  Value* none = graph.constant(Constant::of<int64_t>({0}, {}));
  expect_kept(graph.add("reduce_sum", {start, none}, {{"empty_axes", "none"}}));
}
TEST_F(Simplify, PadsOfSomeAxesStayAnInput) {
  expect_kept(graph.add("pad", {start, graph.ints({1, 1}), nullptr, graph.ints({2})}));
}
TEST_F(Simplify, KnownScalesTellTheShape) {
  Value* scales = graph.constant(Constant::of<float>({3}, {1, 2, 0.5}));
  Value* y = graph.add("resize", {start, nullptr, scales}, {}, "y");
  EXPECT_FALSE(y->shape()[1].known());
  expect(y, R"(
%start: f32[N, 3, 4] = exp(%x)
%y: f32[N, 6, 2] = resize(%start) {scales=[1, 2, 0.5]}
%end: f32[N, 6, 2] = neg(%y)
)");
}

TEST_F(Simplify, AnOutputThatIsAnInputStaysANode) {
  graph.set_outputs({graph.add("identity", {x}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"simplify"}), 0);
}

}  // namespace

}  // namespace anymps::testing
