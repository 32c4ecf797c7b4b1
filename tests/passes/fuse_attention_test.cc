// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct FuseAttention : ::testing::Test {
  Graph graph;
  Dim S = Dim::symbol("S");
  Value* q = graph.input("q", DType::kF32, {kN, 3, S, 4});
  Value* k = graph.input("k", DType::kF32, {kN, 3, S, 4});
  Value* v = graph.input("v", DType::kF32, {kN, 3, S, 5});
  Value* mask = graph.input("mask", DType::kF32, {kN, 1, 1, S});
  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  Value* swapped(Value* value) {
    return graph.add("transpose", {value}, {{"perm", Ints{0, 1, 3, 2}}});
  }
  Value* attend(Value* scores) {
    return graph.add("matmul", {graph.add("softmax", {scores}), v}, {}, "y");
  }
};

TEST_F(FuseAttention, KeysThatComeTransposed) {
  Value* flat = graph.input("flat", DType::kF32, {kN, S, 3, 4});
  Value* keys = graph.add("transpose", {flat}, {{"perm", Ints{0, 2, 3, 1}}}, "keys");
  Value* scores = graph.add("matmul", {q, keys}, {}, "scores");
  scores = graph.add("div", {scores, number(2)}, {}, "scaled");
  scores = graph.add("add", {scores, mask}, {}, "masked");
  graph.set_outputs({attend(scores)});
  EXPECT_EQ(nodes_of(graph), R"(
%keys: f32[N, 3, 4, S] = transpose(%flat) {perm=[0, 2, 3, 1]}
%scores: f32[N, 3, S, S] = matmul(%q, %keys)
%scaled: f32[N, 3, S, S] = div(%scores, %const)
%masked: f32[N, 3, S, S] = add(%scaled, %mask)
%softmax: f32[N, 3, S, S] = softmax(%masked)
%y: f32[N, 3, S, 5] = matmul(%softmax, %v)
)");
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%flat.transposed: f32[N, 3, S, 4] = transpose(%flat) {perm=[0, 2, 1, 3]}
%y: f32[N, 3, S, 5] = sdpa(%q, %flat.transposed, %v, %mask) {scale=0.5}
)");
}

TEST_F(FuseAttention, ScaleOnTheQueries) {
  Value* scores = graph.add("matmul", {graph.add("mul", {q, number(0.25)}), swapped(k)});
  graph.set_outputs({attend(scores)});
  EXPECT_EQ(rewrite(graph, {"matmul_transpose", "fuse_attention"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 3, S, 5] = sdpa(%q, %k, %v) {scale=0.25}
)");
}

TEST_F(FuseAttention, WithoutScale) {
  graph.set_outputs({attend(graph.add("matmul", {q, k}, {{"transpose_b", true}}))});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 3, S, 5] = sdpa(%q, %k, %v) {scale=1}
)");
}

TEST_F(FuseAttention, OneHead) {
  Value* q3 = graph.input("q3", DType::kF32, {kN, S, 4});
  Value* v3 = graph.input("v3", DType::kF32, {kN, S, 6});
  Value* row = graph.input("row", DType::kF32, {S});
  Value* scores = graph.add("matmul", {q3, q3}, {{"transpose_b", true}, {"alpha", 0.5}});
  scores = graph.add("add", {row, scores});
  graph.set_outputs({graph.add("matmul", {graph.add("softmax", {scores}), v3}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(count(graph, "sdpa"), 1);
}

// Positions and padding.
TEST_F(FuseAttention, SeveralMasks) {
  Value* bias = graph.input("bias", DType::kF32, {3, S, S});
  Value* scores = graph.add("matmul", {q, k}, {{"transpose_b", true}, {"alpha", 0.5}});
  graph.set_outputs({attend(graph.add("add", {mask, graph.add("add", {scores, bias})}))});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(count(graph, "sdpa"), 1) << to_text(graph);
  EXPECT_EQ(count(graph, "softmax"), 0);
}

TEST_F(FuseAttention, AChoiceInsteadOfASum) {
  Value* keep = graph.add("greater", {mask, number(0)}, {}, "keep");
  for (const bool keeps : {true, false}) {
    Value* scores = graph.add("matmul", {q, k}, {{"transpose_b", true}, {"alpha", 0.5}});
    Value* out = number(-std::numeric_limits<float>::max());
    graph.set_outputs(
        {attend(graph.add("where", {keep, keeps ? scores : out, keeps ? out : scores}))});
    EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
    EXPECT_EQ(count(graph, "softmax"), 0) << to_text(graph);
  }
}

TEST_F(FuseAttention, AChoiceOfASmallNumberIsNoMask) {
  Value* keep = graph.add("greater", {mask, number(0)}, {}, "keep");
  Value* scores = graph.add("matmul", {q, k}, {{"transpose_b", true}});
  graph.set_outputs({attend(graph.add("where", {keep, scores, number(-5)}))});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 0);
}

// As PyTorch exports a mask that may leave a query without any key.
TEST_F(FuseAttention, ZeroInPlaceOfNaN) {
  Value* scores = graph.add("matmul", {q, k}, {{"transpose_b", true}});
  Value* weights = graph.add("softmax", {graph.add("add", {scores, mask})});
  weights = graph.add("where", {graph.add("is_nan", {weights}), number(0), weights});
  graph.set_outputs({graph.add("matmul", {weights, v}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(count(graph, "softmax"), 0) << to_text(graph);
}

// As PyTorch writes the same since 2.5, and what Apple's exporter makes of it: whether a row of
// scores is all -infinity is read from the scores.
struct ARowWithoutKeys : FuseAttention {
  enum Reading { kMean, kMax, kOr, kAnd, kAndOfOthers, kOrOfFew };

  Value* empty_rows(Value* scores, Reading reading, double bound) {
    const NamedAttrs last{{"axes", Ints{3}}};
    Value* out = graph.add("equal", {scores, number(bound)});
    if (reading == kAnd) return graph.add("reduce_and", {out}, last);
    if (reading == kOrOfFew) return graph.add("logical_not", {graph.add("reduce_or", {out}, last)});
    Value* in = graph.add("logical_not", {out});
    if (reading == kAndOfOthers) return graph.add("reduce_and", {in}, last);
    if (reading == kOr) return graph.add("logical_not", {graph.add("reduce_or", {in}, last)});
    Value* some = graph.add(reading == kMean ? "reduce_mean" : "reduce_max",
                            {graph.add("cast", {in}, {{"dtype", DType::kF32}})}, last);
    if (reading == kMax) return graph.add("equal", {some, number(0)});
    return graph.add("logical_not", {graph.add("not_equal", {some, number(0)})});
  }

  int fused(Reading reading, double bound = -std::numeric_limits<double>::infinity(),
            bool exchanged = false) {
    Value* scores = graph.add("add", {graph.add("matmul", {q, k}, {{"transpose_b", true}}), mask});
    Value* weights = graph.add("softmax", {scores});
    Value* empty = empty_rows(scores, reading, bound);
    weights = exchanged
                  ? graph.add("where", {graph.add("logical_not", {empty}), weights, number(0)})
                  : graph.add("where", {empty, number(0), weights});
    graph.set_outputs({graph.add("matmul", {weights, v}, {}, "y")});
    return rewrite(graph, {"fuse_attention"});
  }
};

TEST_F(ARowWithoutKeys, ByAMean) {
  EXPECT_EQ(fused(kMean), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 3, S, 5] = sdpa(%q, %k, %v, %mask) {scale=1}
)");
}
TEST_F(ARowWithoutKeys, ByAMaximum) { EXPECT_EQ(fused(kMax), 1); }
TEST_F(ARowWithoutKeys, ByAnOr) { EXPECT_EQ(fused(kOr), 1); }
TEST_F(ARowWithoutKeys, ByAnAnd) { EXPECT_EQ(fused(kAnd), 1); }
TEST_F(ARowWithoutKeys, WithTheChoiceExchanged) {
  EXPECT_EQ(fused(kMean, -std::numeric_limits<double>::infinity(), true), 1);
}
TEST_F(ARowWithoutKeys, OtherConditionsStay) {
  EXPECT_EQ(fused(kAndOfOthers), 0);
  EXPECT_EQ(fused(kOrOfFew), 0);
  EXPECT_EQ(fused(kMean, -1e30), 0);
}
TEST_F(ARowWithoutKeys, ScoresThatOthersReadStay) {
  ASSERT_EQ(fused(kMean, -1e30), 0);
  Value* y = graph.outputs()[0];
  Value* scores = y->producer->input(0)->producer->input(2)->producer->input(0);
  Value* weights =
      graph.add("where", {empty_rows(scores, kMean, -std::numeric_limits<double>::infinity()),
                          number(0), graph.add("softmax", {scores})});
  graph.set_outputs({y, graph.add("matmul", {weights, v}, {}, "z")});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 0);
}

// As an einsum is exported: keys times queries, turned.
TEST_F(FuseAttention, ScoresThatAreTurned) {
  Value* scores = graph.add("matmul", {k, q}, {{"transpose_b", true}, {"alpha", 0.5}});
  graph.set_outputs({attend(graph.add("add", {swapped(scores), mask}))});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 3, S, 5] = sdpa(%q, %k, %v, %mask) {scale=0.5}
)");
}

TEST_F(FuseAttention, ScoresThatAreTurnedOfQueriesThatAre) {
  Value* scores = graph.add("matmul", {k, swapped(q)});
  graph.set_outputs({attend(swapped(scores))});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
  EXPECT_EQ(count(graph, "softmax"), 0);
}

TEST_F(FuseAttention, BatchAndHeadsInOneAxis) {
  for (const bool masked : {false, true}) {
    const auto flat = [&](Value* value, int64_t width) {
      return graph.add("reshape", {value}, {{"shape", Ints{-1, 6, width}}});
    };
    const std::string n = masked ? "m" : "";
    Value* a = graph.input("a" + n, DType::kF32, {kN, 3, 6, 4});
    Value* b = graph.input("b" + n, DType::kF32, {kN, 3, 6, 5});
    Value* scores =
        graph.add("matmul", {flat(a, 4), flat(a, 4)}, {{"transpose_b", true}, {"alpha", 0.5}});
    scores = graph.add("reshape", {scores}, {{"shape", Ints{-1, 3, 6, 6}}});
    if (masked) scores = graph.add("add", {scores, graph.input("row", DType::kF32, {kN, 1, 1, 6})});
    Value* weights = flat(graph.add("softmax", {scores}), 6);
    graph.set_outputs({graph.add("matmul", {weights, flat(b, 5)}, {}, "y")});
    EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 1);
    EXPECT_EQ(count(graph, "sdpa"), 1) << to_text(graph);
    EXPECT_EQ(count(graph, "softmax"), 0);
  }
}

TEST_F(FuseAttention, SharedKeysAreNotForSdpa) {
  Value* shared = graph.input("shared", DType::kF32, {1, 3, S, 4});
  graph.set_outputs({attend(graph.add("matmul", {q, shared}, {{"transpose_b", true}}))});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 0);
}

TEST_F(FuseAttention, AnotherSoftmaxAxisIsSomethingElse) {
  Value* scores = graph.add("matmul", {q, k}, {{"transpose_b", true}});
  graph.set_outputs(
      {graph.add("matmul", {graph.add("softmax", {scores}, {{"axis", 2}}), v}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 0);
}

TEST_F(FuseAttention, WeightsThatOthersReadStay) {
  Value* weights =
      graph.add("softmax", {graph.add("matmul", {q, k}, {{"transpose_b", true}})}, {}, "p");
  graph.set_outputs({weights, graph.add("matmul", {weights, v}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_attention"}), 0);
}

}  // namespace

}  // namespace anymps::testing
