// SPDX-License-Identifier: Apache-2.0
// Trains a small network to tell the inside of a ring from the rest of the plane. The graph holds
// the network, its loss, the gradients and the step of gradient descent; weights go in and come
// out. At the end it draws what has been learned.
#include <cmath>
#include <cstdio>
#include <random>

#include "anymps/anymps.hpp"

namespace {

constexpr int64_t kBatch = 256, kHidden = 24;
constexpr float kRate = 0.5f;

float in_ring(float x, float y) {
  const float radius = std::sqrt(x * x + y * y);
  return radius > 0.4f && radius < 0.8f ? 1.0f : 0.0f;
}

class Network {
 public:
  explicit Network(amps::Graph& graph) : graph_(graph) {
    x = graph.input("x", amps::DType::f32, {-1, 2}, {"N"});
    layer(2, kHidden);
    layer(kHidden, kHidden);
    layer(kHidden, 1);
    amps::Value h = x;
    for (size_t i = 0; i < weights.size(); i += 2) {
      h = graph.add(graph.matmul(h, weights[i]), weights[i + 1]);
      if (i + 2 < weights.size()) h = graph.tanh(h);
    }
    score = h;
  }

  amps::Value x, score;
  std::vector<amps::Value> weights;
  std::vector<std::vector<int64_t>> shapes;

 private:
  void layer(int64_t in, int64_t out) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{in, out}, {out}}) {
      const std::string name = (shape.size() == 2 ? "w" : "b") + std::to_string(weights.size() / 2);
      weights.push_back(graph_.input(name, amps::DType::f32, shape));
      shapes.push_back(shape);
    }
  }
  amps::Graph& graph_;
};

void draw(const amps::Device& device, const std::vector<amps::Tensor>& weights) {
  amps::Graph graph("classify");
  const Network network(graph);
  graph.outputs({graph.sigmoid(network.score)});
  constexpr int kWide = 56, kHigh = 26;
  std::vector<float> points;
  for (int row = 0; row < kHigh; ++row)
    for (int column = 0; column < kWide; ++column) {
      points.push_back(2.0f * static_cast<float>(column) / (kWide - 1) - 1);
      points.push_back(1 - 2.0f * static_cast<float>(row) / (kHigh - 1));
    }
  std::vector<amps::Tensor> feeds{
      device.from_host(amps::DType::f32, {kWide * kHigh, 2}, points.data())};
  feeds.insert(feeds.end(), weights.begin(), weights.end());
  const std::vector<float> inside = device.compile(graph).run(feeds)[0].to_vector<float>();
  for (size_t i = 0; i < inside.size(); ++i)
    std::printf("%c%s", " .:+#"[std::min(4, static_cast<int>(inside[i] * 5))],
                (i + 1) % kWide == 0 ? "\n" : "");
}

}  // namespace

int main() {
  try {
    const amps::Device device = amps::Device::get();
    amps::Graph graph("step");
    Network network(graph);
    const amps::Value target = graph.input("t", amps::DType::f32, {-1, 1}, {"N"});
    // Cross entropy from scores: softplus(s) - t * s.
    const amps::Value loss = graph.reduce_mean(
        graph.sub(graph.softplus(network.score), graph.mul(target, network.score)),
        {.keep_dims = false});
    const std::vector<amps::Value> gradients = graph.gradient(loss, network.weights);
    std::vector<amps::Value> outputs{loss};
    for (size_t i = 0; i < gradients.size(); ++i)
      outputs.push_back(
          graph.sub(network.weights[i], graph.mul(gradients[i], graph.scalar(kRate))));
    graph.outputs(outputs);
    const amps::Executable step = device.compile(graph);

    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<amps::Tensor> weights;
    for (const std::vector<int64_t>& shape : network.shapes) {
      std::vector<float> values(static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1)));
      if (shape.size() > 1)
        for (float& value : values)
          value = uniform(random) * std::sqrt(6.0f / static_cast<float>(shape[0] + shape[1]));
      weights.push_back(device.from_host(amps::DType::f32, shape, values.data()));
    }
    float first = 0, last = 0;
    for (int i = 0; i <= 1500; ++i) {
      std::vector<float> points, targets;
      for (int64_t k = 0; k < kBatch; ++k) {
        points.push_back(uniform(random));
        points.push_back(uniform(random));
        targets.push_back(in_ring(points[points.size() - 2], points.back()));
      }
      std::vector<amps::Tensor> feeds{
          device.from_host(amps::DType::f32, {kBatch, 2}, points.data())};
      feeds.insert(feeds.end(), weights.begin(), weights.end());
      feeds.push_back(device.from_host(amps::DType::f32, {kBatch, 1}, targets.data()));
      std::vector<amps::Tensor> results = step.run(feeds);
      last = results[0].to_vector<float>()[0];
      if (i == 0) first = last;
      if (i % 250 == 0) std::printf("step %4d  loss %.4f\n", i, static_cast<double>(last));
      weights.assign(results.begin() + 1, results.end());
    }
    draw(device, weights);
    return last < first / 2 ? 0 : 1;
  } catch (const amps::Error& error) {
    std::fprintf(stderr, "%s: %s\n", amps_status_name(error.status()), error.what());
  }
  return 1;
}
