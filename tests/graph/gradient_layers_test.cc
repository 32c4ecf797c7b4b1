// SPDX-License-Identifier: Apache-2.0
// Layers whose gradient is one op where only their first result is used: that it is taken, and
// against differences. tests/op_table/gradient_test.cc uses all results.
#include "graph/gradient.h"
#include "support/device_tensor.h"

namespace anymps::testing {
namespace {

struct LayerCase {
  const char *op, *gradient_op;
  std::vector<Shape> shapes;
  NamedAttrs attrs;
  size_t outputs;
};

TestTensor numbers_for(const Shape& shape, size_t i) {
  return TestTensor(DType::kF64, shape).fill(10 + i, -1, 1);
}

void check_layer(const LayerCase& c) {
  SCOPED_TRACE(fmt::format("{} with {} results", c.op, c.outputs));
  Graph graph;
  std::vector<Value*> xs;
  std::vector<TestTensor> feeds;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    xs.push_back(graph.input(fmt::format("x{}", i), DType::kF64, to_dims(c.shapes[i])));
    feeds.push_back(numbers_for(c.shapes[i], i));
  }
  const Node* node = graph.add_node(get_op(c.op), xs, c.attrs, "layer", c.outputs);
  Value* y = node->outputs[0];
  Value* seed = graph.input("seed", DType::kF64, y->shape());
  feeds.push_back(numbers_for(to_shape(y->shape()), 99));
  Value* loss =
      graph.add("reduce_sum", {graph.add("mul", {y, seed})}, {{"keep_dims", false}}, "loss");
  std::vector<Value*> outputs = gradient(graph, loss, xs);
  bool fused = false;
  for (const Node* n : graph.node_list()) fused |= n->is(c.gradient_op);
  EXPECT_TRUE(fused) << "no " << c.gradient_op;
  outputs.insert(outputs.begin(), loss);
  graph.set_outputs(outputs);
  verify(graph);
  const auto results = run_graph(graph, feeds);
  for (size_t i = 0; i < xs.size(); ++i)
    for (size_t k = 0; k < results[i + 1].size(); k += 3) {
      constexpr double kStep = 1e-5;
      double sides[2];
      for (const size_t side : {0, 1}) {
        std::vector<TestTensor> moved = feeds;
        moved[i].data<double>()[k] += side ? kStep : -kStep;
        sides[side] = run_graph(graph, moved)[0][0];
      }
      EXPECT_NEAR(results[i + 1][k], (sides[1] - sides[0]) / (2 * kStep), 1e-7)
          << "input " << i << " element " << k;
    }
}

TEST(GradientLayers, AgreeWithDifferences) {
  const NamedAttrs groups = {{"groups", 2}};
  for (const LayerCase& c : std::initializer_list<LayerCase>{
           {"softmax", "softmax_result_gradient", {{2, 3, 4}}, {{"axis", 1}}, 1},
           {"log_softmax", "log_softmax_gradient", {{2, 3, 4}}, {}, 1},
           {"layer_norm", "layer_norm_gradient", {{3, 5}, {5}, {5}}, {}, 1},
           {"layer_norm", "layer_norm_gradient", {{3, 5}, {5}, {5}}, {}, 3},
           {"layer_norm", "layer_norm_gradient", {{3, 5}}, {}, 1},
           {"rms_norm", "rms_norm_gradient", {{3, 5}, {5}}, {}, 1},
           {"rms_norm", "rms_norm_gradient", {{3, 5}, {5}}, {}, 2},
           {"group_norm", "group_norm_gradient", {{2, 4, 3}, {4}, {4}}, groups, 1},
           {"group_norm", "group_norm_gradient", {{2, 4, 3}, {4}, {4}}, groups, 3},
           {"batch_norm_training", "batch_norm_training_gradient", {{3, 2, 3}, {2}, {2}}, {}, 3},
           {"sdpa", "sdpa_gradient", {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 3}}, {}, 1},
           {"sdpa",
            "sdpa_gradient",
            {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 3}},
            {{"causal", true}},
            2}})
    check_layer(c);
}

}  // namespace
}  // namespace anymps::testing
