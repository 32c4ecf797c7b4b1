// SPDX-License-Identifier: Apache-2.0
// Calls whose inputs have versions: what is packed is kept, and never for elements that it was not
// packed from.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

Values numbers(int64_t count, int seed) {
  Values made(static_cast<size_t>(count));
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = std::sin(static_cast<float>(i * 7 + static_cast<size_t>(seed) * 31 + 1));
  return made;
}

// Never the same: memory of one test may be that of another.
uint64_t fresh() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

struct Case {
  const char* op;
  Dims x, w, w_strides, y;
  std::vector<amps_attr> attrs = {};
};

const int64_t kPads[] = {1, 1, 1, 1};

amps_attr integer(const char* name, int64_t value) {
  amps_attr attr{};
  attr.name = name;
  attr.kind = AMPS_ATTR_INT;
  attr.i = value;
  return attr;
}

amps_attr pads() {
  amps_attr attr{};
  attr.name = "pads";
  attr.kind = AMPS_ATTR_INTS;
  attr.ints = kPads;
  attr.count = 4;
  return attr;
}

std::vector<Case> cases() {
  return {
      {"matmul", {8, 96}, {96, 64}, {}, {8, 64}},
      {"matmul", {8, 96}, {96, 64}, {1, 96}, {8, 64}},  // weights as a layer has them
      {"matmul", {1, 96}, {96, 64}, {1, 96}, {1, 64}},
      {"matmul", {2, 5, 96}, {96, 64}, {1, 96}, {2, 5, 64}},
      {"conv", {1, 32, 9, 9}, {48, 32, 1, 1}, {}, {1, 48, 9, 9}},
      {"conv", {1, 32, 9, 9}, {48, 32, 3, 3}, {}, {1, 48, 9, 9}, {pads()}},
      {"conv", {1, 32, 9, 9}, {32, 1, 3, 3}, {}, {1, 32, 9, 9}, {pads(), integer("groups", 32)}}};
}

int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

class Layer {
 public:
  explicit Layer(const Case& which, const char* device = "cpu") : case_(which) {
    amps::check(amps_device_get(device, &device_));
    amps::check(amps_call_create(device_, amps_op_find(case_.op), case_.attrs.data(),
                                 case_.attrs.size(), nullptr, 0, &call_));
  }
  ~Layer() { amps_call_release(call_); }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // Version 0: a call that keeps nothing.
  Values run(const Values& x, const void* weights, uint64_t version,
             amps_stream* stream = nullptr) const {
    Values y(static_cast<size_t>(count_of(case_.y)));
    const auto view = [](const void* data, const Dims& dims, const Dims& strides) {
      return amps_view{const_cast<void*>(data), dims.data(),
                       strides.empty() ? nullptr : strides.data(), AMPS_F32,
                       static_cast<int32_t>(dims.size())};
    };
    const amps_view in[] = {view(x.data(), case_.x, {}), view(weights, case_.w, case_.w_strides)};
    const amps_view out = view(y.data(), case_.y, {});
    const uint64_t versions[] = {0, version};
    amps::check(amps_call_run_versions(call_, in, 2, versions, nullptr, &out, 1, stream));
    if (stream) amps::check(amps_stream_synchronize(stream));
    return y;
  }
  size_t packed() const {
    amps_memory_stats stats{};
    stats.size = sizeof stats;
    amps::check(amps_device_memory_stats(device_, &stats));
    return stats.packed_weights;
  }
  amps_device* device() const { return device_; }
  const Case& about() const { return case_; }

 private:
  Case case_;
  amps_device* device_ = nullptr;
  amps_call* call_ = nullptr;
};

::testing::AssertionResult near(const Values& got, const Values& expected) {
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= 1e-4f))
      return ::testing::AssertionFailure()
             << "element " << i << " is " << got[i] << ", expected " << expected[i];
  return ::testing::AssertionSuccess();
}

TEST(Versions, ANewVersionIsReadAnew) {
  for (const Case& which : cases()) {
    SCOPED_TRACE(std::string(which.op) + " " + std::to_string(which.w.size()));
    const Layer layer(which);
    const Values x = numbers(count_of(which.x), 1);
    Values w = numbers(count_of(which.w), 2);
    const Values first = layer.run(x, w.data(), 0);
    const uint64_t version = fresh();
    for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(near(layer.run(x, w.data(), version), first));
    w = numbers(count_of(which.w), 3);
    const Values second = layer.run(x, w.data(), 0);
    EXPECT_FALSE(near(first, second));
    EXPECT_TRUE(near(layer.run(x, w.data(), fresh()), second));
    EXPECT_TRUE(near(layer.run(x, w.data(), 0), second));
    amps::check(amps_device_forget(layer.device(), w.data(), w.size() * sizeof(float)));
  }
}

// What is kept is kept: elements that change against the promise are not seen.
TEST(Versions, TheSameVersionIsPackedOnce) {
  const Layer layer(cases()[1]);
  const Values x = numbers(count_of(layer.about().x), 1);
  Values w = numbers(count_of(layer.about().w), 2);
  const size_t before = layer.packed();
  const uint64_t version = fresh();
  const Values first = layer.run(x, w.data(), version);
  EXPECT_GE(layer.packed(), before + w.size() * sizeof(float));
  std::fill(w.begin(), w.end(), 0.0f);
  EXPECT_EQ(layer.run(x, w.data(), version), first);
  EXPECT_TRUE(near(layer.run(x, w.data(), fresh()), Values(first.size(), 0.0f)));
  amps::check(amps_device_forget(layer.device(), w.data() + 5, sizeof(float)));
  EXPECT_EQ(layer.packed(), before);
}

TEST(Versions, MemoryOfOneAddressInSeveralForms) {
  Values w = numbers(96 * 64, 2);
  Case plain = cases()[0], transposed = cases()[1], half = cases()[0];
  half.w = {96, 32};
  half.y = {8, 32};
  const Values x = numbers(count_of(plain.x), 1);
  uint64_t version = fresh();
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 2) {
      w = numbers(96 * 64, 5);
      version = fresh();
    }
    for (const Case& which : {plain, transposed, half}) {
      const Layer layer(which);
      EXPECT_TRUE(near(layer.run(x, w.data(), version), layer.run(x, w.data(), 0)));
    }
  }
}

TEST(Versions, AReleasedBufferIsLetGo) {
  const Layer layer(cases()[0]);
  const Values x = numbers(count_of(layer.about().x), 1);
  const size_t bytes = 96 * 64 * sizeof(float), before = layer.packed();
  for (int turn = 1; turn < 5; ++turn) {  // the pool gives the same memory again
    amps_buffer* buffer = nullptr;
    amps::check(amps_buffer_create(layer.device(), bytes, &buffer));
    const Values w = numbers(96 * 64, turn);
    std::copy(w.begin(), w.end(), static_cast<float*>(amps_buffer_data(buffer)));
    EXPECT_TRUE(near(layer.run(x, amps_buffer_data(buffer), fresh()), layer.run(x, w.data(), 0)));
    EXPECT_GT(layer.packed(), before);
    amps_buffer_release(buffer);
    EXPECT_EQ(layer.packed(), before);
  }
}

TEST(Versions, WhatIsKeptIsBounded) {
  const Layer layer(cases()[0], "cpu:61");
  const size_t bytes = 96 * 64 * sizeof(float);
  const size_t limit = 3 << 20;  // of which a quarter may be packed
  amps::check(amps_device_set_memory_limit(layer.device(), limit));
  const Values x = numbers(count_of(layer.about().x), 1);
  std::vector<Values> weights;
  for (int i = 0; i < 64; ++i) weights.push_back(numbers(96 * 64, i));
  const uint64_t version = fresh();
  for (int turn = 0; turn < 2; ++turn)
    for (const Values& w : weights) {
      EXPECT_TRUE(near(layer.run(x, w.data(), version), layer.run(x, w.data(), 0)));
      EXPECT_LE(layer.packed(), limit / 4 + bytes);
    }
  EXPECT_GT(layer.packed(), limit / 8);
  amps::check(amps_device_clear_caches(layer.device()));
  EXPECT_EQ(layer.packed(), 0u);
  amps::check(amps_device_set_memory_limit(layer.device(), 0));
}

TEST(Versions, ThreadsAndStreams) {
  const Case which = cases()[1];
  const Values x = numbers(count_of(which.x), 1);
  std::vector<Values> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(numbers(96 * 64, i));
  const Layer layer(which);
  std::vector<Values> expected;
  for (const Values& w : weights) expected.push_back(layer.run(x, w.data(), 0));
  // Each thread has memory of its own that changes, and all share what does not.
  const uint64_t shared = fresh();
  const auto work = [&](int thread, bool defers) {
    amps_stream* stream = nullptr;
    if (thread % 2) amps::check(amps_stream_create(layer.device(), &stream));
    if (stream && defers) amps::check(amps_stream_defer(stream, AMPS_MAX_WINDOW));
    Values own(96 * 64);
    for (int turn = 0; turn < 60; ++turn) {
      const auto at = static_cast<size_t>(turn * 5 + thread) % weights.size();
      own = weights[at];
      EXPECT_TRUE(near(layer.run(x, own.data(), fresh(), stream), expected[at]));
      EXPECT_TRUE(near(layer.run(x, weights[at].data(), shared, stream), expected[at]));
      if (turn % 7 == 0)
        amps::check(amps_device_forget(layer.device(), weights[at].data(), sizeof(float)));
    }
    amps_stream_release(stream);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i, i == 3);
  for (std::thread& thread : threads) thread.join();
  amps::check(amps_device_clear_caches(layer.device()));
}

}  // namespace
