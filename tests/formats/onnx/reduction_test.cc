// SPDX-License-Identifier: Apache-2.0
// Order, running sums, and results as long as the data say: opsets, and numbers that are inputs.
#include <gtest/gtest.h>

#include "formats/onnx/model_builder.h"
#include "formats/onnx/run.h"

namespace anymps::onnx {
namespace {

using Ints = std::vector<int64_t>;

TEST(OnnxReduction, TopKOfAllOpsets) {
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
    const auto results = run_graph(*model.import(), x);
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
  const auto results = run_graph(*fed.import(), {x[0], longs({1}, {1})});
  EXPECT_EQ(results[0].values<float>(), (Floats{1, 3, 2}));
  EXPECT_EQ(results[1].values<int64_t>(), (Ints{0, 0, 0}));
}

TEST(OnnxReduction, CumSumWithAnAxisThatIsFed) {
  const auto model = ModelBuilder(14)
                         .input("x", {2, 3})
                         .input("a", {}, DataType::kInt64)
                         .output("y")
                         .node("CumSum", {"x", "a"}, {"y"}, {{"exclusive", 1}});
  EXPECT_EQ(run_graph(*model.import(), {floats({2, 3}, {1, 2, 3, 4, 5, 6}), longs({}, {1})})[0]
                .values<float>(),
            (Floats{0, 1, 3, 0, 4, 9}));
}

TEST(OnnxReduction, ResultsAsLongAsTheDataSay) {
  const auto unique = ModelBuilder(11)
                          .input("x", {"N"})
                          .output("y")
                          .output("i")
                          .output("v")
                          .output("c")
                          .node("Unique", {"x"}, {"y", "i", "v", "c"}, {{"sorted", 0}});
  const auto results = run_graph(*unique.import(), {floats({6}, {2, 1, 1, 3, 4, 3})});
  EXPECT_EQ(results[0].values<float>(), (Floats{2, 1, 3, 4}));
  EXPECT_EQ(results[3].values<int64_t>(), (Ints{1, 2, 2, 1}));
  const auto nonzero =
      ModelBuilder(13).input("x", {"N", 2}).output("y").node("NonZero", {"x"}, {"y"});
  const auto places = run_graph(*nonzero.import(), {floats({2, 2}, {0, 1, 2, 0})});
  EXPECT_EQ(places[0].shape, (Shape{2, 2}));
  EXPECT_EQ(places[0].values<int64_t>(), (Ints{0, 1, 1, 0}));
}

}  // namespace
}  // namespace anymps::onnx
