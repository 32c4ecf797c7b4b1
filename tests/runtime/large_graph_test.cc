// SPDX-License-Identifier: Apache-2.0
// Graphs of very many nodes take time in proportion to their nodes. Where the work grew with the
// square or worse, these graphs took minutes; the bound is far above what they take now, and counts
// the time of this thread alone, so that other work on the machine does not matter.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "support/device_tensor.h"

namespace anymps {
namespace {

using Ints = std::vector<int64_t>;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct LargeGraph {
  const char* name;
  int64_t nodes;
  std::function<void(Graph&, Value*, int64_t)> build;
};

const LargeGraph kLarge[] = {
    {"equal nodes that are all outputs", 10'000,
     [](Graph& graph, Value* x, int64_t n) {
       std::vector<Value*> outputs;
       for (int64_t i = 0; i < n; ++i) outputs.push_back(graph.add("relu", {x}));
       graph.set_outputs(outputs);
     }},
    {"a chain in place", 30'000,
     [](Graph& graph, Value* x, int64_t n) {
       for (int64_t i = 0; i < n; ++i) x = graph.add("softmax", {x}, {{"axis", -1}});
       graph.set_outputs({x});
     }},
    {"views of views, all outputs", 10'000,
     [](Graph& graph, Value* x, int64_t n) {
       x = graph.add("softmax", {x}, {{"axis", -1}});
       std::vector<Value*> outputs;
       for (int64_t i = 0; i < n; ++i) {
         x = graph.add("reshape", {x}, {{"shape", i % 2 ? Ints{2, 2} : Ints{4, 1}}});
         outputs.push_back(x);
       }
       graph.set_outputs(outputs);
     }},
    {"different slices of one value", 30'000,
     [](Graph& graph, Value* x, int64_t n) {
       std::vector<Value*> outputs;
       for (int64_t i = 0; i < n; ++i)
         outputs.push_back(graph.add(
             "pad", {x}, {{"pads", Ints{0, i % 7}}, {"mode", i % 2 ? "constant" : "edge"}}));
       graph.set_outputs(outputs);
     }},
    {"one value read by many, all alive at once", 30'000,
     [](Graph& graph, Value* x, int64_t n) {
       std::vector<Value*> parts;
       for (int64_t i = 0; i < n; ++i)
         parts.push_back(graph.add(
             "softmax", {graph.add("mul", {x, graph.scalar(DType::kF32, double(i + 2))})}));
       graph.set_outputs({graph.add("concat", parts, {{"axis", 0}})});
     }},
    {"one value many times in one node", 30'000,
     [](Graph& graph, Value* x, int64_t n) {
       const std::vector<Value*> parts(static_cast<size_t>(n), graph.add("identity", {x}));
       graph.set_outputs({graph.add("concat", parts, {{"axis", 0}})});
     }},
    {"many that go because nobody reads them", 30'000,
     [](Graph& graph, Value* x, int64_t n) {
       for (int64_t i = 0; i < n; ++i) graph.add("sin", {x});
       graph.set_outputs({graph.add("relu", {x})});
     }},
};

// Code that sanitizers watch is several times slower; a time that grows with the square is minutes.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kMostSeconds = 60;
#else
constexpr double kMostSeconds = 5;
#endif

TEST(LargeGraph, TakesTimeInProportionToItsNodes) {
  const DevicePtr device = Device::get("cpu");
  for (const LargeGraph& large : kLarge) {
    Graph graph;
    large.build(graph, graph.input("x", DType::kF32, {4}), large.nodes);
    const double start = thread_seconds();
    Executable executable(device, graph, {.threads = 1});
    std::vector<Tensor> results;
    executable.run({testing::tensor(*device, {4}, {1, 2, 3, 4})}, results);
    EXPECT_EQ(results.size(), graph.outputs().size());
    EXPECT_LT(thread_seconds() - start, kMostSeconds) << large.name;
  }
}

// The numbers are right where memory is shared along a chain and where a value is still needed.
TEST(LargeGraph, ChainsInPlaceKeepWhatIsReadLater) {
  const DevicePtr device = Device::get("cpu");
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* first = graph.add("cumsum", {x}, {{"axis", 0}});
  Value* chain = first;
  for (int i = 0; i < 5; ++i) chain = graph.add("softmax", {chain}, {{"axis", -1}});
  Value* twice = graph.add("matmul", {graph.add("reshape", {chain}, {{"shape", Ints{1, 4}}}),
                                      graph.add("reshape", {chain}, {{"shape", Ints{4, 1}}})});
  Value* last = graph.add("softmax", {chain}, {{"axis", -1}});
  graph.set_outputs({twice, last, first});
  const std::vector<std::vector<double>> expected =
      testing::run_graph(graph, {testing::TestTensor(DType::kF32, {4}, {1, -2, 3, 0.5})});
  const std::vector<std::vector<double>> found =
      testing::run_graph(graph, {testing::TestTensor(DType::kF32, {4}, {1, -2, 3, 0.5})}, "cpu");
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t k = 0; k < expected[i].size(); ++k)
      EXPECT_NEAR(found[i][k], expected[i][k], 1e-6) << i << " " << k;
}

}  // namespace
}  // namespace anymps
