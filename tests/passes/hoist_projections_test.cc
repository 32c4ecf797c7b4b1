// SPDX-License-Identifier: Apache-2.0
// Products of a sequence's slices: made before the loop, with the same numbers, and only where a
// loop goes through the sequence.
#include "passes/pass_test.h"
#include "runtime/executable.h"
#include "support/graph_parts.h"

namespace anymps::testing {

namespace {

const ValueType kCounter{DType::kI32, true, {}, std::nullopt};
const ValueType kState{DType::kF32, true, {kN, 4}, std::nullopt};
const ValueType kSequence{DType::kF32, true, {Dim::symbol("T"), kN, 3}, std::nullopt};

// s = tanh(x[time] * w[:, :4] + b + s); time = time + step, as exporters write recurrent layers.
struct Recurrent {
  Graph graph;
  Value* x = graph.input("x", kSequence);
  Value* s = graph.input("s", kState);
  Value* w = weights(graph, "w", {3, 8});
  Value* b = weights(graph, "b", {4});
  GraphPtr loop = std::make_shared<Graph>();
  double step = 1;
  bool slice_escapes = false, product_escapes = false;
  int doublings = 0;  // of the weights, in the loop

  void build(int64_t trips) {
    loop->input("i", kNumber);
    Value* go = loop->input("go", kTruth);
    Value* time = loop->input("time", kCounter);
    Value* state = loop->input("state", kState);
    Value* sequence = loop->input("sequence", x->type);
    Value* weight = loop->input("weight", {DType::kF32, true, {3, 8}, std::nullopt});
    Value* bias = loop->input("bias", {DType::kF32, true, {4}, std::nullopt});
    Value* part = loop->add("gather", {sequence, time}, {}, "slice");
    Node* halves = loop->add_node(get_op("split"), {weight}, {{"axis", 1}, {"sizes", Ints{4, 4}}},
                                  "halves", 2);
    Value* half = halves->outputs[0];
    for (int i = 0; i < doublings; ++i) half = loop->add("max", {half, half});
    Value* product = loop->add("matmul", {part, half}, {}, "product");
    Value* sum = loop->add("add", {loop->add("add", {product, bias}), state});
    if (slice_escapes) sum = loop->add("add", {sum, loop->add("reduce_sum", {part})});
    if (product_escapes) sum = loop->add("sub", {sum, product});
    Value* next = loop->add("tanh", {sum});
    Value* later = loop->add("add", {time, loop->scalar(DType::kI32, step)});
    loop->set_outputs({go, later, next, next});
    Value* limit = graph.constant(Constant::of<int64_t>({}, {trips}));
    Value* start = graph.constant(Constant::of<int32_t>({}, {0}));
    Node* node = graph.add_node(get_op("loop"), {limit, nullptr, start, s, x, w, b},
                                {body("body", loop), {"carried", 2}}, "loop", 3);
    graph.set_outputs({node->outputs[1], node->outputs[2]});
  }

  std::vector<float> run(const std::vector<std::string>& without, int64_t t, int64_t n) {
    DevicePtr device = Device::get("cpu");
    Executable executable(device, graph, {.check = true, .without_passes = without});
    std::vector<Tensor> feeds, results;
    for (const Shape& shape : {Shape{t, n, 3}, Shape{n, 4}}) {
      std::vector<float> values(static_cast<size_t>(element_count(shape)));
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i % 13) - 1;
      feeds.push_back(device->from_host(TensorDesc(DType::kF32, shape), values.data()));
    }
    executable.run(feeds, results);
    std::vector<float> all;
    for (const Tensor& result : results) {
      std::vector<float> part(static_cast<size_t>(result.desc.count()));
      device->to_host(result, part.data());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  // How many matmuls there are before the loop; results stay the same.
  int hoisted(int64_t trips) {
    build(trips);
    for (const int64_t n : {1, 3}) {
      const std::vector<float> before = run({"hoist_projections"}, 5, n), after = run({}, 5, n);
      EXPECT_EQ(before.size(), static_cast<size_t>((trips + 1) * n * 4));
      EXPECT_EQ(before.size(), after.size());
      for (size_t i = 0; i < before.size() && i < after.size(); ++i)
        EXPECT_NEAR(before[i], after[i], 1e-5) << i;
    }
    auto copy = graph.clone();
    PassContext context = fusing();
    run_passes(*copy, context);
    return count(*copy, "matmul");
  }
};

TEST(HoistProjections, OfASequence) { EXPECT_EQ(Recurrent().hoisted(5), 1); }
TEST(HoistProjections, OfALoopThatEndsEarly) { EXPECT_EQ(Recurrent().hoisted(2), 1); }
TEST(HoistProjections, OfALoopThatNeverRuns) { EXPECT_EQ(Recurrent().hoisted(0), 1); }

TEST(HoistProjections, SlicesThatAreUsedOtherwiseStay) {
  Recurrent layer;
  layer.slice_escapes = layer.product_escapes = true;
  EXPECT_EQ(layer.hoisted(5), 1);
}

// An index that is no counter may need a few slices only.
TEST(HoistProjections, NotWithAnotherIndex) {
  Recurrent layer;
  layer.step = 2;
  EXPECT_EQ(layer.hoisted(2), 0);
}

TEST(HoistProjections, NotWithWeightsThatAreFed) {
  Recurrent layer;
  layer.w = layer.graph.add(
      "add", {layer.w, layer.graph.add("reduce_sum", {layer.s}, {{"keep_dims", false}})});
  EXPECT_EQ(layer.hoisted(5), 0);
}

TEST(HoistProjections, NotOfATable) {
  Recurrent layer;
  Value* fed = layer.x;
  layer.x = weights(layer.graph, "table", {5, 1, 3});
  layer.build(5);
  layer.graph.set_outputs({layer.graph.outputs()[0], layer.graph.add("neg", {fed})});
  auto copy = layer.graph.clone();
  PassContext context = fusing();
  run_passes(*copy, context);
  EXPECT_EQ(count(*copy, "matmul"), 0);
}

// Two paths from each value to the one before it: 2^2000 in all.
TEST(HoistProjections, WeightsThatAreReachedOnManyPathsAreLookedAtOnce) {
  Recurrent layer;
  layer.doublings = 2000;
  EXPECT_EQ(layer.hoisted(3), 1);
}

}  // namespace

}  // namespace anymps::testing
