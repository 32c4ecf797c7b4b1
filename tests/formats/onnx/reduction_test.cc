// SPDX-License-Identifier: Apache-2.0
// Converters of the ops over data: where opsets differ, where a number may be an input, and where
// an op becomes several.
#include <gtest/gtest.h>

#include "formats/onnx/model_builder.h"
#include "formats/onnx/read/import.h"
#include "formats/onnx/run.h"

namespace anymps::onnx {
namespace {

using Ints = std::vector<int64_t>;

std::vector<HostTensor> run_model(const ModelBuilder& model, const std::vector<HostTensor>& feeds) {
  return run_graph(*model.import(), feeds);
}

TEST(OnnxData, TopKOfAllOpsets) {
  const std::vector<HostTensor> x = {floats({2, 3}, {1, 3, 2, 6, 4, 5})};
  const auto old = ModelBuilder(1)
                       .input("x", {2, 3})
                       .output("v")
                       .output("i")
                       .node("TopK", {"x"}, {"v", "i"}, {{"k", 2}});
  const auto middle = ModelBuilder(10)
                          .input("x", {2, 3})
                          .output("v")
                          .output("i")
                          .ints("k", {2})
                          .node("TopK", {"x", "k"}, {"v", "i"});
  for (const ModelBuilder& model : {old, middle}) {
    const auto results = run_model(model, x);
    EXPECT_EQ(results[0].values<float>(), (Floats{3, 2, 6, 5}));
    EXPECT_EQ(results[1].values<int64_t>(), (Ints{1, 2, 0, 2}));
  }
  const auto fed =
      ModelBuilder(11)
          .input("x", {2, 3})
          .input("k", {1}, DataType::kInt64)
          .output("v")
          .output("i")
          .node("TopK", {"x", "k"}, {"v", "i"}, {{"largest", 0}, {"axis", 0}, {"sorted", 1}});
  const auto results = run_model(fed, {x[0], longs({1}, {1})});
  EXPECT_EQ(results[0].values<float>(), (Floats{1, 3, 2}));
  EXPECT_EQ(results[1].values<int64_t>(), (Ints{0, 0, 0}));
}

TEST(OnnxData, CumSumWithAnAxisThatIsFed) {
  const auto model = ModelBuilder(14)
                         .input("x", {2, 3})
                         .input("a", {}, DataType::kInt64)
                         .output("y")
                         .node("CumSum", {"x", "a"}, {"y"}, {{"exclusive", 1}});
  EXPECT_EQ(
      run_model(model, {floats({2, 3}, {1, 2, 3, 4, 5, 6}), longs({}, {1})})[0].values<float>(),
      (Floats{0, 1, 3, 0, 4, 9}));
}

TEST(OnnxData, Scatters) {
  const auto elements =
      ModelBuilder(18)
          .input("x", {1, 5})
          .ints("i1", {1, 1})
          .ints("s", {1, 2})
          .node("Reshape", {"i1", "s"}, {"i"})
          .floats("u", {1, 2}, {1.5f, 2})
          .output("y")
          .node("ScatterElements", {"x", "i", "u"}, {"y"}, {{"axis", 1}, {"reduction", "add"}});
  EXPECT_EQ(run_model(elements, {floats({1, 5}, {1, 2, 3, 4, 5})})[0].values<float>(),
            (Floats{1, 5.5f, 3, 4, 5}));
  const auto cache =
      ModelBuilder(24)
          .input("cache", {2, 3, 1})
          .input("update", {2, 2, 1})
          .input("at", {2}, DataType::kInt64)
          .output("y")
          .node("TensorScatter", {"cache", "update", "at"}, {"y"}, {{"mode", "circular"}});
  EXPECT_EQ(run_model(cache, {floats({2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                              floats({2, 2, 1}, {10, 20, 30, 40}), longs({2}, {1, 2})})[0]
                .values<float>(),
            (Floats{1, 10, 20, 40, 5, 30}));
}

TEST(OnnxData, ResultsAsLongAsTheDataSay) {
  const auto unique = ModelBuilder(11)
                          .input("x", {"N"})
                          .output("y")
                          .output("i")
                          .output("v")
                          .output("c")
                          .node("Unique", {"x"}, {"y", "i", "v", "c"}, {{"sorted", 0}});
  const auto results = run_model(unique, {floats({6}, {2, 1, 1, 3, 4, 3})});
  EXPECT_EQ(results[0].values<float>(), (Floats{2, 1, 3, 4}));
  EXPECT_EQ(results[3].values<int64_t>(), (Ints{1, 2, 2, 1}));
  const auto nonzero =
      ModelBuilder(13).input("x", {"N", 2}).output("y").node("NonZero", {"x"}, {"y"});
  const auto places = run_model(nonzero, {floats({2, 2}, {0, 1, 2, 0})});
  EXPECT_EQ(places[0].shape, (Shape{2, 2}));
  EXPECT_EQ(places[0].values<int64_t>(), (Ints{0, 1, 1, 0}));
}

TEST(OnnxData, StepOfMomentum) {
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
  const auto results = run_model(model, {floats({}, {0.5f}), longs({}, {3}), floats({2}, {1, 2}),
                                         floats({2}, {4, 8}), floats({2}, {2, 0})});
  EXPECT_EQ(results[1].values<float>(), (Floats{2, 2}));
  EXPECT_EQ(results[0].values<float>(), (Floats{-1.5f, -2.5f}));
}

}  // namespace
}  // namespace anymps::onnx
