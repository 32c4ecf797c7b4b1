// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct Gelu : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  Value* mul(Value* a, Value* b) { return graph.add("mul", {a, b}); }
  Value* add(Value* a, Value* b) { return graph.add("add", {a, b}); }
  Value* gate() {
    Value* erf = graph.add("erf", {graph.add("div", {x, number(std::sqrt(2))})});
    return add(erf, number(1));
  }
  void expect_gelu(Value* y, const char* text) {
    graph.rename(y, "y");
    graph.set_outputs({y});
    EXPECT_EQ(rewrite(graph, {"fuse_gelu"}), 1) << to_text(graph);
    EXPECT_EQ(nodes_of(graph), text);
  }
};

constexpr const char* kExact = "\n%y: f32[N, 4] = gelu(%x)\n";
constexpr const char* kTanh = "\n%y: f32[N, 4] = gelu(%x) {approximate=\"tanh\"}\n";

TEST_F(Gelu, HalfLast) { expect_gelu(mul(mul(x, gate()), number(0.5)), kExact); }
TEST_F(Gelu, HalfFirst) { expect_gelu(mul(mul(x, number(0.5)), gate()), kExact); }
TEST_F(Gelu, HalfInTheGate) { expect_gelu(mul(mul(number(0.5), gate()), x), kExact); }
TEST_F(Gelu, DividedByTwo) { expect_gelu(graph.add("div", {mul(gate(), x), number(2)}), kExact); }
TEST_F(Gelu, TimesTheRootOfAHalf) {
  Value* erf = graph.add("erf", {mul(number(std::sqrt(0.5)), x)});
  expect_gelu(mul(x, add(mul(erf, number(0.5)), number(0.5))), kExact);
}
TEST_F(Gelu, TanhOfACube) {
  Value* cube = graph.add("pow", {x, number(3)});
  Value* inner = add(x, mul(cube, number(0.044715)));
  Value* tanh = graph.add("tanh", {mul(inner, number(std::sqrt(2 / M_PI)))});
  expect_gelu(mul(mul(number(0.5), x), add(number(1), tanh)), kTanh);
}
TEST_F(Gelu, TanhOfAFactoredCube) {
  Value* bracket = add(number(1), mul(number(0.044715), mul(x, x)));
  Value* tanh = graph.add("tanh", {mul(mul(x, number(std::sqrt(2 / M_PI))), bracket)});
  expect_gelu(mul(x, mul(number(0.5), add(number(1), tanh))), kTanh);
}
TEST_F(Gelu, OtherNumbersAreAnotherFunction) {
  Value* erf = graph.add("erf", {graph.add("div", {x, number(1.5)})});
  graph.set_outputs({mul(mul(x, add(erf, number(1))), number(0.5)), mul(x, gate())});
  EXPECT_EQ(rewrite(graph, {"fuse_gelu"}), 0);
}
TEST_F(Gelu, OnlyForDriversThatFuse) {
  graph.set_outputs({mul(mul(x, gate()), number(0.5))});
  EXPECT_EQ(rewrite(graph, {"fuse_gelu"}, PassContext{}), 0);
}

}  // namespace

}  // namespace anymps::testing
