// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct FuseActivation : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 7});
  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  Value* relu6() {
    return graph.add("clamp", {graph.add("add", {x, number(3)}), number(0), number(6)});
  }
  Value* one_plus_exp() {
    return graph.add("add", {number(1), graph.add("exp", {graph.add("neg", {x})})});
  }
  void expect(Value* y, const std::string& text) {
    graph.rename(y, "y");
    graph.set_outputs({y});
    EXPECT_GE(rewrite(graph, {"fuse_activation"}), 1);
    EXPECT_EQ(nodes_of(graph), "\n%y: f32[N, 7] = " + text + "\n");
  }
};

TEST_F(FuseActivation, Relu) { expect(graph.add("max", {number(0), x}), "relu(%x)"); }
TEST_F(FuseActivation, Clamp) {
  expect(graph.add("min", {graph.add("max", {x, number(-1)}), number(0.5)}),
         "clamp(%x) {min=-1, max=0.5}");
}
TEST_F(FuseActivation, ClampOfRelu) {
  expect(graph.add("min", {graph.add("relu", {x}), number(1)}), "clamp(%x) {min=0, max=1}");
}
TEST_F(FuseActivation, ClampOfClamp) {
  Value* low = graph.add("clamp", {x}, {{"min", 0.0}});
  expect(graph.add("clamp", {low}, {{"max", 6.0}}), "clamp(%x) {min=0, max=6}");
}
TEST_F(FuseActivation, ClampOfRelu6) {
  Value* inner = graph.add("relu", {x});
  expect(graph.add("clamp", {inner}, {{"min", -1.0}, {"max", 6.0}}), "clamp(%x) {min=0, max=6}");
}
TEST_F(FuseActivation, ClampsWithoutCommonNumbers) {
  Value* inner = graph.add("clamp", {x}, {{"min", 0.0}, {"max", 1.0}});
  expect(graph.add("clamp", {inner}, {{"min", 2.0}, {"max", 3.0}}), "clamp(%x) {min=2, max=2}");
}
TEST_F(FuseActivation, AClampThatOthersReadStays) {
  Value* inner = graph.add("clamp", {x}, {{"min", 0.0}}, "inner");
  graph.set_outputs({inner, graph.add("clamp", {inner}, {{"max", 6.0}}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_activation"}), 0);
}
TEST_F(FuseActivation, Sigmoid) {
  expect(graph.add("div", {number(1), one_plus_exp()}), "sigmoid(%x)");
}
TEST_F(FuseActivation, SigmoidByReciprocal) {
  expect(graph.add("reciprocal", {one_plus_exp()}), "sigmoid(%x)");
}
TEST_F(FuseActivation, Silu) {
  expect(graph.add("mul", {graph.add("sigmoid", {x}), x}), "silu(%x)");
}
TEST_F(FuseActivation, SiluAsAQuotient) {
  expect(graph.add("div", {x, one_plus_exp()}), "silu(%x)");
}
TEST_F(FuseActivation, HardSwish) {
  expect(graph.add("div", {graph.add("mul", {x, relu6()}), number(6)}), "hard_swish(%x)");
}
TEST_F(FuseActivation, HardSwishWithOneBoundAfterTheOther) {
  Value* low = graph.add("clamp", {graph.add("add", {x, number(3)})}, {{"min", 0.0}});
  Value* gate = graph.add("clamp", {low}, {{"max", 6.0}});
  expect(graph.add("div", {graph.add("mul", {x, gate}), number(6)}), "hard_swish(%x)");
}
TEST_F(FuseActivation, HardSwishOfHardSigmoid) {
  expect(graph.add("mul", {x, graph.add("div", {relu6(), number(6)})}), "hard_swish(%x)");
}
TEST_F(FuseActivation, Mish) {
  expect(graph.add("mul", {x, graph.add("tanh", {graph.add("softplus", {x})})}), "mish(%x)");
}
TEST_F(FuseActivation, MishOfALogarithm) {
  Value* sum = graph.add("add", {graph.add("exp", {x}), number(1)});
  expect(graph.add("mul", {graph.add("tanh", {graph.add("log", {sum})}), x}), "mish(%x)");
}
TEST_F(FuseActivation, ClampFromAbove) {
  expect(graph.add("max", {number(0), graph.add("min", {x, number(6)})}),
         "clamp(%x) {min=0, max=6}");
}
TEST_F(FuseActivation, LeakyRelu) {
  expect(graph.add("max", {graph.add("mul", {x, number(0.25)}), x}), "leaky_relu(%x) {alpha=0.25}");
}
TEST_F(FuseActivation, TheLargerOfTwoSlopesStays) {
  graph.set_outputs({graph.add("max", {graph.add("mul", {x, number(1.5)}), x}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_activation"}), 0);
}
TEST_F(FuseActivation, HardSigmoid) {
  Value* line = graph.add("add", {graph.add("mul", {x, number(0.25)}), number(0.5)});
  expect(graph.add("clamp", {line}, {{"min", 0.0}, {"max", 1.0}}), "hard_sigmoid(%x) {alpha=0.25}");
}
TEST_F(FuseActivation, AClampOfAProductStays) {
  Value* line = graph.add("mul", {x, number(0.25)});
  graph.set_outputs({graph.add("clamp", {line}, {{"min", 0.0}, {"max", 1.0}}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_activation"}), 0);
}
TEST_F(FuseActivation, TheGateOfAnotherTensorStays) {
  Value* z = graph.input("z", DType::kF32, {kN, 7});
  graph.set_outputs({graph.add("mul", {z, graph.add("sigmoid", {x})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_activation"}), 0);
}

}  // namespace

}  // namespace anymps::testing
