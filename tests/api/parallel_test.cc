// SPDX-License-Identifier: Apache-2.0
// Runs beside each other on the device's threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

TEST(Parallel, CallsEachIndexOnce) {
  for (const std::string& name : amps::Device::names()) {
    const amps::Device device = amps::Device::get(name);
    for (const int threads : {0, 1, 2, 7}) {
      std::array<std::atomic<int>, 100> calls{};
      device.parallel(calls.size(), threads, [&](size_t i) { ++calls.at(i); });
      for (const auto& count : calls) EXPECT_EQ(count, 1) << name;
      device.parallel(0, threads, [](size_t) { FAIL(); });
    }
  }
}

TEST(Parallel, ErrorsComeBack) {
  const amps::Device device = amps::Device::get("cpu");
  EXPECT_THROW(device.parallel(4, 2,
                               [](size_t i) {
                                 if (i == 2) throw std::range_error("two");
                               }),
               std::range_error);
  EXPECT_EQ(amps_device_parallel(device.c(), 1, 1, nullptr, nullptr), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(amps_device_parallel(
                nullptr, 1, 1, [](void*, size_t) {}, nullptr),
            AMPS_INVALID_ARGUMENT);
}

// Kernels are prepared for a number of threads: a run inside has a plan of its own.
TEST(Parallel, RunsInsideHaveAPlanForOneThread) {
  const amps::Device device = amps::Device::get("cpu");
  if (device.max_threads() < 2) GTEST_SKIP() << "one core";
  constexpr int64_t kRows = 64, kInner = 512, kColumns = 256;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {kRows, kInner});
  std::vector<float> w(kInner * kColumns);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 17) - 8;
  graph.outputs({graph.matmul(x, graph.constant(amps::DType::f32, {kInner, kColumns}, w.data()),
                              amps::MatmulOptions{}, "y")});
  amps::CompileOptions options;
  options.threads = 2;
  const amps::Executable executable = device.compile(graph, options);
  const auto run = [&](size_t seed) {
    std::vector<float> data(kRows * kInner);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i + seed) % 13) - 6;
    return executable.run({device.from_host(amps::DType::f32, {kRows, kInner}, data.data())})[0]
        .to_vector<float>();
  };
  const auto plans = [&] {
    amps_cache_stats stats{};
    stats.size = sizeof(stats);
    amps::check(amps_executable_plan_cache(executable.c(), &stats));
    return stats.entries;
  };
  std::vector<std::vector<float>> expected(16), got(16);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = run(i);
  EXPECT_EQ(plans(), 1u);
  for (int turn = 0; turn < 3; ++turn) {
    device.parallel(got.size(), 2, [&](size_t i) { got[i] = run(i); });
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i]);  // whole numbers
  }
  EXPECT_EQ(plans(), 2u);
  EXPECT_EQ(run(3), expected[3]);
}

}  // namespace
