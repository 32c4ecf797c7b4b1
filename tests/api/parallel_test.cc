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

// Plans do not know how many threads there are.
TEST(Parallel, RunsInsideShareThePlan) {
  const amps::Device device = amps::Device::get("cpu");
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
  EXPECT_EQ(plans(), 1u);
  EXPECT_EQ(run(3), expected[3]);
}

TEST(Parallel, TheNumberOfThreadsMayChange) {
  const amps::Device device = amps::Device::get("cpu");
  const int before = device.max_threads();
  for (const int threads : {3, 1, before}) {
    device.set_max_threads(threads);
    EXPECT_EQ(device.max_threads(), threads);
    std::atomic<int> calls = 0;
    device.parallel(50, 0, [&](size_t) { ++calls; });
    EXPECT_EQ(calls, 50);
  }
  for (const int threads : {0, -1, AMPS_MAX_THREADS + 1})
    EXPECT_EQ(amps_device_set_max_threads(device.c(), threads), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(device.max_threads(), before);
  double helped = -1, waited = -1;
  EXPECT_EQ(amps_device_thread_times(device.c(), &helped, &waited), AMPS_OK);
  EXPECT_GE(helped, 0);
  EXPECT_GE(waited, 0);
  EXPECT_EQ(amps_device_thread_times(device.c(), nullptr, &waited), AMPS_INVALID_ARGUMENT);
}

}  // namespace
