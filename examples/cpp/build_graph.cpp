// SPDX-License-Identifier: Apache-2.0
// Builds a small classifier by hand, softmax(relu(x @ w1 + b1) @ w2), shows the graph before and
// after the passes, and runs it with two batch sizes. Then a wrong shape, to show an error.
#include <cmath>
#include <cstdio>

#include "anymps/anymps.hpp"

namespace {

// Any numbers will do as weights.
std::vector<float> wave(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) + 1);
  return values;
}

void run(const amps::Device& device, const amps::Executable& executable, int64_t batch) {
  const std::vector<float> x = wave(static_cast<size_t>(batch) * 8);
  const amps::Tensor feed = device.from_host(amps::DType::f32, {batch, 8}, x.data());
  const std::vector<float> y = executable.run({feed})[0].to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i)
    std::printf("%s%.4f", i == 0 ? "" : i % 3 == 0 ? "\n" : " ", static_cast<double>(y[i]));
  std::printf("\n\n");
}

}  // namespace

int main() {
  try {
    amps::Graph graph("classifier");
    const amps::Value x = graph.input("x", amps::DType::f32, {-1, 8}, {"N"});
    const amps::Value w1 = graph.constant({8, 16}, wave(8 * 16));
    const amps::Value b1 = graph.constant({16}, wave(16));
    const amps::Value w2 = graph.constant({16, 3}, wave(16 * 3));
    const amps::Value hidden = graph.relu(graph.add(graph.matmul(x, w1), b1), "hidden");
    graph.outputs({graph.softmax(graph.matmul(hidden, w2), {.axis = -1}, "y")});
    std::printf("%s\n", graph.text().c_str());

    const amps::Device device = amps::Device::get();
    const amps::Executable executable = device.compile(graph);
    std::printf("%s\n", executable.text("text").c_str());
    run(device, executable, 1);
    run(device, executable, 2);

    try {
      graph.add(w1, w2);
    } catch (const amps::Error& error) {
      std::printf("as expected: %s\n", error.what());
      return 0;
    }
    std::fprintf(stderr, "shapes that do not fit were taken\n");
  } catch (const amps::Error& error) {
    std::fprintf(stderr, "%s: %s\n", amps_status_name(error.status()), error.what());
  }
  return 1;
}
