// SPDX-License-Identifier: Apache-2.0
// Optimizers.
#include <gtest/gtest.h>

#include "formats/onnx/model_builder.h"
#include "formats/onnx/run.h"

namespace anymps::onnx {
namespace {

TEST(OnnxLearning, StepOfMomentum) {
  const auto model =
      ModelBuilder(17)
          .import_opset("ai.onnx.preview.training", 1)
          .input("r", {})
          .input("t", {}, DataType::kInt64)
          .input("x", {2})
          .input("g", {2})
          .input("v", {2})
          .output("nx")
          .output("nv")
          .node(
              "Momentum", {"r", "t", "x", "g", "v"}, {"nx", "nv"},
              {{"alpha", 0.5f}, {"beta", 0.25f}, {"norm_coefficient", 0.0f}, {"mode", "nesterov"}},
              "", "ai.onnx.preview.training");
  const auto results =
      run_graph(*model.import(), {floats({}, {0.5f}), longs({}, {3}), floats({2}, {1, 2}),
                                  floats({2}, {4, 8}), floats({2}, {2, 0})});
  EXPECT_EQ(results[1].values<float>(), (Floats{2, 2}));
  EXPECT_EQ(results[0].values<float>(), (Floats{-1.5f, -2.5f}));
}

}  // namespace
}  // namespace anymps::onnx
