// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

void build(Graph& graph) {
  Value* x = graph.input("x", DType::kF32, {kN, 5, 8});
  std::vector<Value*> outputs;
  for (const char* name : {"q", "k", "v"})
    outputs.push_back(graph.add("matmul",
                                {x, weights(graph, std::string("w") + name, {8, 4}),
                                 weights(graph, std::string("b") + name, {4})},
                                {}, name));
  graph.set_outputs(outputs);
}

TEST(MergeQkv, OneMatmulAndViews) {
  Graph graph;
  build(graph);
  setenv("ANYMPS_PASSES", "+merge_qkv", 1);
  EXPECT_EQ(rewrite(graph, {"merge_qkv"}), 1);
  unsetenv("ANYMPS_PASSES");
  EXPECT_EQ(nodes_of(graph), R"(
%q.merged: f32[N, 5, 12] = matmul(%x, %merged.w, %merged.bias)
%q: f32[N, 5, 4], %k: f32[N, 5, 4], %v: f32[N, 5, 4] = split(%q.merged) {axis=-1, sizes=[4, 4, 4]}
)");
}

TEST(MergeQkv, OffUnlessAskedFor) {
  Graph graph;
  build(graph);
  EXPECT_EQ(rewrite(graph, {"merge_qkv"}), 0);
}

}  // namespace

}  // namespace anymps::testing
