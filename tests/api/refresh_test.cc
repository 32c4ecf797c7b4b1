// SPDX-License-Identifier: Apache-2.0
// Constants over the caller's memory, refreshed between runs and while other threads run.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

using amps::DType;
using Numbers = std::vector<float>;

Numbers numbers(size_t count, float first, float step) {
  Numbers list(count);
  for (size_t i = 0; i < count; ++i) list[i] = first + step * static_cast<float>(i % 7);
  return list;
}

amps_view view_of(Numbers& data, const std::vector<int64_t>& dims,
                  const std::vector<int64_t>* strides = nullptr) {
  return {data.data(), dims.data(), strides ? strides->data() : nullptr, AMPS_F32,
          static_cast<int32_t>(dims.size())};
}

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  amps::Device device = amps::Device::get(GetParam());
  Numbers run(const amps::Executable& executable, const Numbers& x,
              const std::vector<int64_t>& shape) {
    return executable.run({device.from_host(DType::f32, shape, x.data())})[0].to_vector<float>();
  }
};

// y = (x @ (2 * w)) * s + b: a product that kernels pack, a folded node, a scale and a bias.
struct Model {
  Numbers w = numbers(64 * 64, -1, 0.25f), s{3}, b = numbers(64, 0, 1);

  amps::Graph graph(bool views) {
    amps::Graph g;
    const auto constant = [&](const char* name, Numbers& data, std::vector<int64_t> shape) {
      return views ? g.constant_view(DType::f32, shape, data.data(), name)
                   : g.constant(DType::f32, shape, data.data(), name);
    };
    const auto x = g.input("x", DType::f32, {-1, 64});
    const auto doubled = g.mul(constant("w", w, {64, 64}), g.scalar(2));
    const auto scaled = g.mul(g.matmul(x, doubled), constant("s", s, {}));
    g.outputs({g.add(scaled, constant("b", b, {64}))});
    return g;
  }
};

TEST_P(OnDevice, RefreshesWhatWasFoldedAndPacked) {
  Model model;
  const auto views = device.compile(model.graph(true));
  const Numbers one = numbers(64, 1, 0.5f), three = numbers(3 * 64, -2, 0.125f);
  const auto same = [&] {
    const auto plain = device.compile(model.graph(false));
    const Numbers expected = run(plain, one, {1, 64}), rows = run(plain, three, {3, 64});
    const Numbers got = run(views, one, {1, 64}), got_rows = run(views, three, {3, 64});
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-3) << i;
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(got_rows[i], rows[i], 1e-3) << i;
  };
  same();
  for (float& number : model.w) number = 1 - number;
  views.refresh({"w"});
  same();
  views.refresh({"s", "b"}, [&] {  // 1 would be simplified away if anybody looked
    model.s[0] = 1;
    for (float& number : model.b) number = 5 - number;
  });
  same();
  model.s[0] = -0.5f;
  views.refresh({"s"});
  same();
}

TEST_P(OnDevice, TheNumberOneIsNotSimplifiedAway) {
  float one = 1;
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {3});
  g.outputs({g.mul(x, g.constant_view(DType::f32, {}, &one, "factor"))});
  const auto executable = device.compile(g);
  EXPECT_EQ(run(executable, {1, 2, 3}, {3}), (Numbers{1, 2, 3}));
  executable.refresh({"factor"}, [&] { one = 4; });
  EXPECT_EQ(run(executable, {1, 2, 3}, {3}), (Numbers{4, 8, 12}));
}

TEST_P(OnDevice, MemoryMayMoveAndIsGivenBack) {
  static std::atomic<int> released{0};
  released = 0;
  const auto count = [](void*) { ++released; };
  Numbers first{1, 2, 3, 4}, second{10, 20, 30, 40};
  {
    const std::vector<int64_t> dims{2, 2}, turned{1, 2};
    amps::Graph g;
    const auto x = g.input("x", DType::f32, {2, 2});
    const auto w = g.constant_view(DType::f32, {2, 2}, first.data(), "w", count);
    g.outputs({g.matmul(x, w)});
    const auto executable = device.compile(g);
    { const amps::Graph gone = std::move(g); }
    EXPECT_EQ(run(executable, {1, 0, 0, 1}, {2, 2}), first);
    EXPECT_EQ(released, 0);
    const amps_view moved = view_of(second, dims, &turned);  // and lies transposed
    const amps_update update{"w", &moved, count, nullptr};
    ASSERT_EQ(amps_executable_refresh(executable.c(), &update, 1, nullptr, nullptr), AMPS_OK)
        << amps_last_error();
    EXPECT_EQ(released, 1) << "nobody needs the first any more";
    EXPECT_EQ(run(executable, {1, 0, 0, 1}, {2, 2}), (Numbers{10, 30, 20, 40}));
    second = {5, 6, 7, 8};
    executable.refresh({"w"});
    executable.refresh({"w"});
    EXPECT_EQ(run(executable, {1, 0, 0, 1}, {2, 2}), (Numbers{5, 7, 6, 8}));
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 2);
}

TEST_P(OnDevice, RefusesWhatDoesNotFitAndKeepsTheOld) {
  static int released = 0;
  Numbers w{1, 2}, other{1, 2, 3};
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {2});
  g.outputs({g.mul(x, g.constant_view(DType::f32, {2}, w.data(), "w"))});
  const auto executable = device.compile(g);
  const std::vector<int64_t> dims{3};
  const amps_view wrong = view_of(other, dims);
  for (const amps_update& update : {amps_update{"v", nullptr, nullptr, nullptr},
                                    amps_update{"w", &wrong, [](void*) { ++released; }, nullptr}}) {
    const amps_update both[] = {{"w", nullptr, nullptr, nullptr}, update};
    EXPECT_EQ(amps_executable_refresh(executable.c(), both, 2, nullptr, nullptr),
              update.view ? AMPS_INVALID_ARGUMENT : AMPS_NOT_FOUND);
    EXPECT_NE(std::string(amps_last_error()).find("[refresh]"), std::string::npos);
  }
  EXPECT_EQ(released, 0) << "what was not taken is the caller's";
  EXPECT_EQ(run(executable, {1, 1}, {2}), (Numbers{1, 2}));
}

// A loop adds w in each round: w is a capture, a constant inside the body.
TEST_P(OnDevice, RefreshesTheBodiesOfLoops) {
  Numbers w{1, 2};
  amps::Graph body;
  const auto round = body.input("i", DType::i64, {});
  const auto carried = body.input("carried", DType::f32, {2});
  const auto captured = body.input("captured", DType::f32, {2});
  body.outputs({body.add(carried, captured)});
  (void)round;
  amps::Graph g;
  const int64_t bounds[] = {0, 3, 1};
  std::vector<amps_value*> inputs;
  for (const int64_t& bound : bounds) inputs.push_back(g.constant(DType::i64, {}, &bound).c());
  inputs.push_back(g.input("x", DType::f32, {2}).c());
  inputs.push_back(g.constant_view(DType::f32, {2}, w.data(), "w").c());
  amps_attr attrs[2] = {};
  attrs[0].name = "body";
  attrs[0].kind = AMPS_ATTR_GRAPH;
  attrs[0].graph = body.c();
  attrs[1].name = "carried";
  attrs[1].i = 1;
  amps_value* out = nullptr;
  amps::check(amps_graph_op(g.c(), amps_op_find("for_loop"), inputs.data(), inputs.size(), attrs, 2,
                            nullptr, &out, 1));
  g.outputs({out});
  const auto executable = device.compile(g);
  EXPECT_EQ(run(executable, {0, 0}, {2}), (Numbers{3, 6}));
  executable.refresh({"w"}, [&] { w = {10, 20}; });
  EXPECT_EQ(run(executable, {0, 0}, {2}), (Numbers{30, 60}));
}

INSTANTIATE_TEST_SUITE_P(Devices, OnDevice, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

// Every element of w and b is the same number n, so every element of y must be 64 n + n.
TEST(Refresh, ARunSeesOldOrNewNumbersNeverBoth) {
  const auto device = amps::Device::get("cpu");
  Numbers w(64 * 64, 0), b(64, 0);
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {2, 64});
  const auto product = g.matmul(x, g.constant_view(DType::f32, {64, 64}, w.data(), "w"));
  g.outputs({g.add(product, g.constant_view(DType::f32, {64}, b.data(), "b"))});
  const auto executable = device.compile(g);
  const Numbers ones(2 * 64, 1);
  std::atomic<bool> stop{false};
  std::atomic<int> mixed{0}, runs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const auto feed = device.from_host(DType::f32, {2, 64}, ones.data());
      while (!stop) {
        const Numbers y = executable.run({feed})[0].to_vector<float>();
        const float n = y[0] / 65;
        for (const float element : y)
          mixed += element != 65 * n || n != static_cast<float>(static_cast<int>(n));
        ++runs;
      }
    });
  for (int n = 1; n <= 50; ++n)
    executable.refresh({"w", "b"}, [&] {
      w.assign(w.size(), static_cast<float>(n));
      b.assign(b.size(), static_cast<float>(n));
    });
  while (runs < 100) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed, 0);
}

TEST(Refresh, PreparesOnlyWhatUsesTheConstant) {
  const auto device = amps::Device::get("cpu:7");
  Numbers w(256 * 256, 1), v(256 * 256, 1);
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {8, 256});
  const auto h = g.matmul(x, g.constant_view(DType::f32, {256, 256}, w.data(), "w"));
  g.outputs({g.matmul(g.tanh(h), g.constant_view(DType::f32, {256, 256}, v.data(), "v"))});
  const auto executable = device.compile(g);
  const uint64_t packed = device.memory().packed_weights, before = device.memory().allocations;
  executable.refresh({"w"});
  EXPECT_EQ(device.memory().packed_weights, packed) << "the old form is gone";
  const uint64_t one = device.memory().allocations - before;
  executable.refresh({"w", "v"});
  const uint64_t two = device.memory().allocations - before - one;
  if (packed > 0) EXPECT_LT(one, two) << "v is not packed again with w";
}

TEST(Refresh, FilesHoldTheNumbersOfTheirTime) {
  const auto device = amps::Device::get("cpu");
  Numbers w{1, 2};
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {2});
  g.outputs({g.mul(x, g.exp(g.constant_view(DType::f32, {2}, w.data(), "w")))});
  const auto executable = device.compile(g);
  executable.refresh({"w"}, [&] { w = {0, 1}; });
  const std::string bytes = executable.bytes();
  executable.refresh({"w"}, [&] { w = {5, 5}; });
  const auto loaded = device.load(std::as_bytes(std::span(bytes)));
  const Numbers ones{1, 1};
  const Numbers y =
      loaded.run({device.from_host(DType::f32, {2}, ones.data())})[0].to_vector<float>();
  EXPECT_FLOAT_EQ(y[0], 1);
  EXPECT_FLOAT_EQ(y[1], 2.7182818f);
}

}  // namespace
