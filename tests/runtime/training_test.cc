// SPDX-License-Identifier: Apache-2.0
// Gradients at work: one step of gradient descent against numbers computed with NumPy, and small
// networks whose loss falls.
#include "graph/gradient.h"
#include "runtime/device.h"
#include "runtime/executable.h"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor wave(const Shape& shape, double step, double scale, DType dtype = DType::kF64) {
  TestTensor tensor(dtype, shape);
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i)
    values.push_back(std::sin(static_cast<double>(i) * step + 1) * scale);
  return tensor.set(values);
}

// A graph whose outputs are the loss and the weights after a step.
struct Training {
  Graph graph;
  std::vector<Value*> weights;
  std::vector<TestTensor> values;

  Value* weight(const TestTensor& value) {
    weights.push_back(
        graph.input(fmt::format("w{}", weights.size()), value.dtype(), to_dims(value.shape())));
    values.push_back(value);
    return weights.back();
  }
  void minimize(Value* loss, double rate) {
    std::vector<Value*> outputs{loss};
    const std::vector<Value*> gradients = gradient(graph, loss, weights, nullptr, true);
    for (size_t i = 0; i < weights.size(); ++i)
      outputs.push_back(graph.add(
          "sub",
          {weights[i], graph.add("mul", {gradients[i], graph.scalar(weights[i]->dtype(), rate)})}));
    graph.set_outputs(outputs);
    verify(graph);
  }
  // Runs steps and returns the losses; the weights are kept.
  std::vector<double> run(const char* driver, int steps) {
    const DevicePtr device = Device::get(driver);
    Executable executable(device, graph);
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      std::vector<Tensor> feeds, results(values.size() + 1);
      for (const TestTensor& value : values)
        feeds.push_back(device->from_host(value.desc(), value.ptr()));
      executable.run(feeds, results);
      for (size_t k = 0; k < results.size(); ++k) {
        TestTensor host(results[k].desc.dtype, results[k].desc.shape);
        device->to_host(results[k], host.ptr());
        if (k == 0)
          losses.push_back(host.values()[0]);
        else
          values[k - 1] = host;
      }
    }
    return losses;
  }
};

Value* constant(Graph& graph, const TestTensor& tensor) {
  return graph.constant(
      Constant::copy(tensor.dtype(), tensor.shape(),
                     {static_cast<const std::byte*>(tensor.ptr()),
                      static_cast<size_t>(tensor.count()) * size_of(tensor.dtype())}));
}

// Mean over rows of -log_softmax(scores)[label].
Value* cross_entropy(Graph& graph, Value* scores, const std::vector<double>& one_hot) {
  const Shape shape = to_shape(scores->shape());
  Value* target = constant(graph, TestTensor(scores->dtype(), shape, one_hot));
  Value* picked = graph.add("mul", {graph.add("log_softmax", {scores}), target});
  Value* sum = graph.add("reduce_sum", {picked}, {{"keep_dims", false}});
  return graph.add("mul",
                   {sum, graph.scalar(scores->dtype(), -1.0 / static_cast<double>(shape[0]))});
}

TEST(Training, OneStepAgreesWithNumpy) {
  for (const char* driver : {"reference", "cpu"}) {
    Training net;
    Value* x = constant(net.graph, wave({4, 3}, 0.7, 1));
    Value* w1 = net.weight(wave({3, 5}, 0.9, 0.5));
    Value* b1 = net.weight(wave({5}, 1.1, 0.1));
    Value* w2 = net.weight(wave({5, 3}, 1.3, 0.5));
    Value* h =
        net.graph.add("tanh", {net.graph.add("add", {net.graph.add("matmul", {x, w1}), b1})});
    Value* scores = net.graph.add("matmul", {h, w2});
    net.minimize(cross_entropy(net.graph, scores, {1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1}), 0.1);
    EXPECT_NEAR(net.run(driver, 1)[0], 1.1580937437, 1e-11);
    const std::vector<double> expected[] = {
        {0.412190942533, 0.474917037688, 0.172442268432, -0.275224657447, -0.488263895221,
         -0.354010544263, 0.0528903048423, 0.434710954102, 0.463093168856, 0.161640377115,
         -0.265363397738, -0.507721396379, -0.337189986867, 0.0657985754551, 0.424198170586},
        {0.0767026681207, 0.0953900038667, -0.013125371221, -0.0924775726928, -0.0699877641935},
        {0.416876115094, 0.365603882024, -0.210152120273, -0.490650139187, -0.057547475278,
         0.484426595131, 0.297335447699, -0.325248127276, -0.451828311256, 0.0722678725893,
         0.495734629287, 0.192287483246, -0.387607135709, -0.393774445275, 0.157284450295}};
    for (size_t i = 0; i < 3; ++i) {
      const std::vector<double> actual = net.values[i].values();
      ASSERT_EQ(actual.size(), expected[i].size());
      for (size_t k = 0; k < actual.size(); ++k)
        EXPECT_NEAR(actual[k], expected[i][k], 1e-11)
            << driver << ", weight " << i << "[" << k << "]";
    }
  }
}

TEST(Training, AConvolutionalNetworkLearns) {
  // Horizontal against vertical stripes.
  constexpr int64_t kImages = 12;
  TestTensor images(DType::kF32, {kImages, 1, 8, 8});
  std::vector<double> target;
  for_each_index(images.shape(), [&](const Shape& at) {
    const int64_t along = at[0] % 2 == 0 ? at[2] : at[3];
    images.put(at, ((along + at[0] / 2) % 4 < 2 ? 1.0 : -1.0) +
                       0.3 * std::sin(static_cast<double>(at[0] * 37 + at[2] * 11 + at[3] * 5)));
  });
  for (int64_t i = 0; i < kImages; ++i)
    target.insert(target.end(), {i % 2 == 0 ? 1. : 0., i % 2 == 0 ? 0. : 1.});
  Training net;
  Graph& graph = net.graph;
  Value* h = constant(graph, images);
  h = graph.add("conv",
                {h, net.weight(wave({6, 1, 3, 3}, 0.8, 0.5, DType::kF32)),
                 net.weight(TestTensor(DType::kF32, {6}))},
                {{"pads", Ints{1, 1, 1, 1}}});
  h = graph.add("relu", {graph.add("layer_norm", {h}, {{"axis", 1}})});
  h = graph.add("avg_pool", {h}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  h = graph.add("conv",
                {h, net.weight(wave({8, 6, 3, 3}, 0.6, 0.2, DType::kF32)),
                 net.weight(TestTensor(DType::kF32, {8}))},
                {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  h = graph.add("reshape", {graph.add("gelu", {h})}, {{"shape", Ints{kImages, -1}}});
  Value* scores = graph.add("matmul", {h, net.weight(wave({32, 2}, 1.7, 0.2, DType::kF32))});
  net.minimize(cross_entropy(graph, scores, target), 0.2);
  const std::vector<TestTensor> start = net.values;
  const std::vector<double> exact = net.run("reference", 3);
  net.values = start;
  const std::vector<double> losses = net.run("cpu", 60);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(losses[i], exact[i], 1e-4);
  EXPECT_GT(losses.front(), 0.4);
  EXPECT_LT(losses.back(), 0.05);
}

}  // namespace
}  // namespace anymps::testing
