// SPDX-License-Identifier: Apache-2.0
// Loads a model (.onnx or .mps), feeds it zeros and shows what comes out, how long it took and how
// much memory it needed.
//   run_model MODEL [DEVICE] [EXTENT]     EXTENT: of every dynamic dimension, default 1
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "anymps/anymps.hpp"

namespace {

std::string describe(amps::DType dtype, const std::vector<int64_t>& shape) {
  std::string text = amps::name(dtype);
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "[") + std::to_string(shape[i]);
  return text + (shape.empty() ? "[]" : "]");
}

amps::Tensor zeros(const amps::Device& device, const amps::Value& input, int64_t extent) {
  std::vector<int64_t> shape = input.shape();
  size_t count = 1;
  for (int64_t& dim : shape) {
    if (dim < 0) dim = extent;
    count *= static_cast<size_t>(dim);
  }
  const std::vector<std::byte> bytes(count * amps::size_of(input.dtype()));
  return device.from_host(input.dtype(), shape, bytes.data());
}

void run(const std::string& model, const std::string& device_name, int64_t extent) {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::duration passed) {
    return std::chrono::duration<double, std::milli>(passed).count();
  };
  const amps::Device device = amps::Device::get(device_name);
  const auto start = Clock::now();
  const amps::Executable executable = device.compile(amps::Graph::load(model));
  std::printf("%s on %s: ready in %.1f ms\n", model.c_str(), device.name().c_str(),
              milliseconds(Clock::now() - start));

  std::vector<amps::Tensor> feeds;
  for (const amps::Value& input : executable.inputs()) {
    feeds.push_back(zeros(device, input, extent));
    std::printf("  in   %s: %s\n", input.name().c_str(),
                describe(feeds.back().dtype(), feeds.back().shape()).c_str());
  }

  // The first run of a shape chooses kernels and packs weights; the second shows the real time and
  // writes into the same results.
  std::vector<amps::Tensor> results = executable.run(feeds);
  const auto second = Clock::now();
  executable.run(feeds, results);
  const double took = milliseconds(Clock::now() - second);

  const std::vector<amps::Value> outputs = executable.outputs();
  for (size_t i = 0; i < results.size(); ++i)
    std::printf("  out  %s: %s\n", outputs[i].name().c_str(),
                describe(results[i].dtype(), results[i].shape()).c_str());
  const double mebibyte = 1 << 20;
  std::printf("  run  %.2f ms, device memory %.1f MiB at most\n", took,
              static_cast<double>(device.memory().peak_allocated) / mebibyte);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: run_model MODEL [DEVICE] [EXTENT]\n");
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? argv[2] : "", argc > 3 ? std::atoll(argv[3]) : 1);
  } catch (const amps::Error& error) {
    std::fprintf(stderr, "%s: %s\n", amps_status_name(error.status()), error.what());
    return 1;
  }
}
