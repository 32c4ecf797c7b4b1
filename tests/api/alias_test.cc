// SPDX-License-Identifier: Apache-2.0
// Results that lie in the memory of feeds by declaration: without a copy where a kernel works in
// place, and right in every case.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "anymps/anymps.hpp"
#include "api/error_of.h"

namespace {

using amps::DType;
using Numbers = std::vector<float>;

// Runs on views: each feed and each result is one of the vectors.
struct Memory {
  std::vector<Numbers> data;
  std::vector<int64_t> dims;

  amps_view view(size_t i) {
    return {data[i].data(), dims.data(), nullptr, AMPS_F32, static_cast<int32_t>(dims.size())};
  }
  void run(const amps::Executable& executable, const std::vector<size_t>& feeds,
           const std::vector<size_t>& results) {
    std::vector<amps_view> in, out;
    for (const size_t i : feeds) in.push_back(view(i));
    for (const size_t i : results) out.push_back(view(i));
    amps::check(amps_executable_run_views(executable.c(), in.data(), in.size(), out.data(),
                                          out.size(), nullptr));
  }
};

size_t steps(const amps::Executable& executable, const char* word) {
  const std::string plan = executable.text("plan");
  size_t count = 0;
  for (size_t at = plan.find(word); at != std::string::npos; at = plan.find(word, at + 1)) ++count;
  return count;
}

class Aliases : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  amps::Device device = amps::Device::get(std::get<0>(GetParam()));
  amps::Executable compile(const amps::Graph& g, std::vector<amps_alias> aliases) {
    return device.compile(
        g, {.optimization_level = std::get<1>(GetParam()), .aliases = std::move(aliases)});
  }
};

// p' = p - 0.5 g, m' = 0.5 m + g: an optimizer. One run in place, one with separate memory.
TEST_P(Aliases, UpdateInPlace) {
  amps::Graph g;
  const auto p = g.input("p", DType::f32, {4}), m = g.input("m", DType::f32, {4}),
             d = g.input("d", DType::f32, {4});
  const auto moved = g.add(g.mul(m, g.scalar(0.5)), d);
  g.outputs({g.sub(p, g.mul(moved, g.scalar(0.5))), moved});
  const auto executable = compile(g, {{0, 0}, {1, 1}});
  Memory memory{{{1, 2, 3, 4}, {2, 2, 2, 2}, {1, 0, 1, 0}, Numbers(4), Numbers(4)}, {4}};
  memory.run(executable, {0, 1, 2}, {3, 4});
  EXPECT_EQ(memory.data[3], (Numbers{0, 1.5, 2, 3.5}));
  EXPECT_EQ(memory.data[4], (Numbers{2, 1, 2, 1}));
  memory.run(executable, {0, 1, 2}, {0, 1});
  EXPECT_EQ(memory.data[0], memory.data[3]);
  EXPECT_EQ(memory.data[1], memory.data[4]);
  if (device.name() == "cpu")  // the reference kernels do not work in place
    EXPECT_EQ(steps(executable, "(copy)"), 0u) << executable.text("plan");
}

// y = x + 1 is ready before x is read again: it must not be written into x at once.
TEST_P(Aliases, WaitForLaterReads) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {3});
  const auto y = g.add(x, g.scalar(1));
  const auto z = g.mul(g.exp(y), g.reverse(x, {.axes = {0}}));
  g.outputs({y, g.sub(z, z), g.reverse(x, {.axes = {0}})});
  const auto executable = compile(g, {{0, 0}});
  Memory memory{{{1, 2, 3}, Numbers(3), Numbers(3)}, {3}};
  memory.run(executable, {0}, {0, 1, 2});
  EXPECT_EQ(memory.data[0], (Numbers{2, 3, 4}));
  EXPECT_EQ(memory.data[1], (Numbers{0, 0, 0}));
  EXPECT_EQ(memory.data[2], (Numbers{3, 2, 1}));
}

TEST_P(Aliases, TwoFeedsChangePlaces) {
  amps::Graph g;
  const auto a = g.input("a", DType::f32, {2}), b = g.input("b", DType::f32, {2});
  g.outputs({b, a});
  const auto executable = compile(g, {{0, 0}, {1, 1}});
  Memory memory{{{1, 2}, {3, 4}}, {2}};
  memory.run(executable, {0, 1}, {0, 1});
  EXPECT_EQ(memory.data[0], (Numbers{3, 4}));
  EXPECT_EQ(memory.data[1], (Numbers{1, 2}));
}

TEST_P(Aliases, AFeedMayBeItsOwnResult) {
  amps::Graph g;
  const auto a = g.input("a", DType::f32, {2, 2});
  g.outputs({a, g.transpose(a)});
  const auto executable = compile(g, {{0, 0}});
  Memory memory{{{1, 2, 3, 4}, Numbers(4), Numbers(4)}, {2, 2}};
  memory.run(executable, {0}, {0, 1});
  EXPECT_EQ(memory.data[0], (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(memory.data[1], (Numbers{1, 3, 2, 4}));
  memory.run(executable, {0}, {2, 1});
  EXPECT_EQ(memory.data[2], (Numbers{1, 2, 3, 4}));
}

// Transposed into itself, and a product with itself: no kernel does that in place.
TEST_P(Aliases, WhatIsNotInPlaceIsComputedAside) {
  amps::Graph g;
  const auto a = g.input("a", DType::f32, {2, 2}), b = g.input("b", DType::f32, {2, 2});
  g.outputs({g.transpose(a), g.matmul(b, b)});
  const auto executable = compile(g, {{0, 0}, {1, 1}});
  Memory memory{{{1, 2, 3, 4}, {1, 1, 0, 1}}, {2, 2}};
  memory.run(executable, {0, 1}, {0, 1});
  EXPECT_EQ(memory.data[0], (Numbers{1, 3, 2, 4}));
  EXPECT_EQ(memory.data[1], (Numbers{1, 2, 0, 1}));
}

// The same memory is fed twice: what is declared for one feed says nothing of the other.
TEST_P(Aliases, AnotherFeedInTheSameMemoryIsRead) {
  amps::Graph g;
  const auto a = g.input("a", DType::f32, {3}), b = g.input("b", DType::f32, {3});
  const auto sum = g.add(a, g.scalar(1));
  g.outputs({sum, g.mul(sum, g.reverse(b, {.axes = {0}}))});
  const auto executable = compile(g, {{0, 0}});
  Memory memory{{{1, 2, 3}, Numbers(3)}, {3}};
  memory.run(executable, {0, 0}, {0, 1});
  EXPECT_EQ(memory.data[0], (Numbers{2, 3, 4}));
  EXPECT_EQ(memory.data[1], (Numbers{6, 6, 4}));
}

TEST_P(Aliases, OnlyAPartOverlaps) {
  amps::Graph g;
  const auto a = g.input("a", DType::f32, {3});
  g.outputs({g.add(a, g.scalar(1))});
  const auto executable = compile(g, {{0, 0}});
  Numbers data{1, 2, 3, 0};
  const int64_t dims[] = {3};
  const amps_view in{data.data(), dims, nullptr, AMPS_F32, 1};
  const amps_view out{data.data() + 1, dims, nullptr, AMPS_F32, 1};
  amps::check(amps_executable_run_views(executable.c(), &in, 1, &out, 1, nullptr));
  EXPECT_EQ(data, (Numbers{1, 2, 3, 4}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Aliases,
                         ::testing::Combine(::testing::Values("cpu", "reference"),
                                            ::testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

// Graphs of random nodes, views among them, whose results lie in random feeds: as with memory of
// their own.
TEST(RandomAliases, GiveWhatSeparateMemoryGives) {
  const auto device = amps::Device::get("cpu");
  size_t in_place = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](size_t count) { return random() % count; };
    amps::Graph g;
    std::vector<amps::Value> values;
    const size_t feeds = 1 + pick(4);
    for (size_t i = 0; i < feeds; ++i)
      values.push_back(g.input("x" + std::to_string(i), DType::f32, {4, 4}));
    for (size_t nodes = pick(12); nodes > 0; --nodes) {
      const auto a = values[pick(values.size())], b = values[pick(values.size())];
      switch (pick(7)) {
        case 0:
          values.push_back(g.add(a, b));
          break;
        case 1:
          values.push_back(g.sub(a, g.scalar(3)));
          break;
        case 2:
          values.push_back(g.transpose(a));
          break;
        case 3:
          values.push_back(g.reverse(a, {.axes = {0}}));
          break;
        case 4:
          values.push_back(g.max(g.matmul(a, b), g.scalar(-50)));
          break;
        case 5:
          values.push_back(g.min(a, g.reshape(b, {.shape = {4, 4}})));
          break;
        default:
          values.push_back(g.op("concat",
                                {g.slice(a, {.starts = {2}, .ends = {4}, .axes = {0}}),
                                 g.slice(b, {.starts = {0}, .ends = {2}, .axes = {0}})},
                                {{"axis", 0}})[0]);
      }
    }
    std::vector<amps::Value> outputs;
    std::vector<amps_alias> aliases;
    std::vector<size_t> order(feeds), own;
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < 1 + feeds; ++i) {
      outputs.push_back(values[values.size() - 1 - pick(std::min<size_t>(values.size(), 6))]);
      if (i < feeds && pick(4) > 0) aliases.push_back({i, order[i]});
      own.push_back(feeds + i);
    }
    g.outputs(outputs);
    Memory memory{std::vector<Numbers>(feeds + outputs.size(), Numbers(16)), {4, 4}};
    for (size_t i = 0; i < feeds; ++i)
      for (float& number : memory.data[i]) number = static_cast<float>(pick(9)) - 4;
    const std::vector<size_t> in = [&] {
      std::vector<size_t> all(feeds);
      std::iota(all.begin(), all.end(), 0);
      return all;
    }();
    const auto executable = device.compile(g, {.optimization_level = static_cast<int>(pick(2)),
                                               .check = pick(8) == 0,
                                               .aliases = aliases});
    Memory expected = memory;
    expected.run(device.compile(g, {.optimization_level = 0}), in, own);
    Memory apart = memory;
    apart.run(executable, in, own);
    std::vector<size_t> out = own;
    for (const amps_alias& alias : aliases) out[alias.result] = alias.feed;
    memory.run(executable, in, out);
    in_place += steps(executable, "(copy)") == 0 && !aliases.empty();
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_EQ(apart.data[own[i]], expected.data[own[i]]) << "seed " << seed << ", result " << i;
      ASSERT_EQ(memory.data[out[i]], expected.data[own[i]])
          << "seed " << seed << ", result " << i << "\n"
          << executable.text("plan");
    }
  }
  EXPECT_GT(in_place, 20u) << "some need no copy";
}

// A cache of keys: one row of 64 changes, and only this row is written.
TEST(AliasedCaches, ChangeOneRow) {
  const auto device = amps::Device::get("cpu");
  amps::Graph g;
  const auto cache = g.input("cache", DType::f32, {64, 8});
  const auto row = g.input("row", DType::f32, {1, 8}), at = g.input("at", DType::i64, {1, 1});
  g.outputs({g.op("scatter_nd", {row, at, cache})[0]});
  const auto executable = device.compile(g, {.aliases = {{0, 0}}});
  EXPECT_EQ(steps(executable, "(copy)"), 0u) << executable.text("plan");
  Numbers data(64 * 8, 1), fresh(8, 5);
  int64_t place = 3;
  const int64_t dims[] = {64, 8}, row_dims[] = {1, 8}, at_dims[] = {1, 1};
  const amps_view feeds[] = {{data.data(), dims, nullptr, AMPS_F32, 2},
                             {fresh.data(), row_dims, nullptr, AMPS_F32, 2},
                             {&place, at_dims, nullptr, AMPS_I64, 2}};
  for (; place < 6; ++place)
    amps::check(amps_executable_run_views(executable.c(), feeds, 3, feeds, 1, nullptr));
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], i / 8 >= 3 && i / 8 < 6 ? 5 : 1) << i;
}

TEST(AliasedCaches, WrongDeclarationsAreRefused) {
  const auto device = amps::Device::get("cpu");
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {3}), i = g.input("i", DType::i32, {3});
  g.outputs({g.neg(x), g.neg(i), g.reduce_sum(x)});
  const std::vector<std::vector<amps_alias>> wrong = {
      {{3, 0}}, {{0, 2}}, {{0, 1}}, {{2, 0}}, {{0, 0}, {0, 0}}};
  for (const auto& aliases : wrong) {
    EXPECT_EQ(
        amps::testing::message_of([&] { device.compile(g, {.aliases = aliases}); }).substr(0, 9),
        "[compile]")
        << aliases[0].result << " in " << aliases[0].feed;
  }
}

}  // namespace
