// SPDX-License-Identifier: Apache-2.0
// Dimensions bound by their names at the call.
#include <gtest/gtest.h>

#include "anymps/anymps.hpp"
#include "api/error_of.h"

namespace {

using amps::DType;
using amps::testing::message_of;
using Numbers = std::vector<float>;

amps::Value dimension(amps::Graph& g, const char* symbol) {
  return g.op("dimension", {}, {{"symbol", symbol}})[0];
}

class Dimensions : public ::testing::TestWithParam<const char*> {
 protected:
  amps::Device device = amps::Device::get(GetParam());
  amps::Tensor tensor(const std::vector<int64_t>& shape, const Numbers& data) {
    return device.from_host(DType::f32, shape, data.data());
  }
};

// x[K] becomes [N, K / N]; N is nowhere in the feeds.
TEST_P(Dimensions, ShapeAReshapeAndARange) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {-1}, {"K"});
  const int64_t minus_one = -1, one = 1, zero = 0;
  const auto n = dimension(g, "N");
  const auto shape =
      g.op("concat", {g.reshape(n, {.shape = {1}}), g.constant(DType::i64, {1}, &minus_one)},
           {{"axis", 0}})[0];
  const auto matrix = g.op("reshape", {x, shape})[0];
  const auto range =
      g.op("range", {g.constant(DType::i64, {}, &zero), n, g.constant(DType::i64, {}, &one)})[0];
  g.outputs({matrix, range, n});
  const auto executable = device.compile(g);
  const auto feed = tensor({6}, {1, 2, 3, 4, 5, 6});
  for (const int64_t rows : {2, 3, 6, 2}) {
    const auto results = executable.bind({{"N", rows}}).run({feed});
    EXPECT_EQ(results[0].shape(), (std::vector<int64_t>{rows, 6 / rows}));
    EXPECT_EQ(results[0].to_vector<float>(), (Numbers{1, 2, 3, 4, 5, 6}));
    std::vector<int64_t> counted;
    for (int64_t i = 0; i < rows; ++i) counted.push_back(i);
    EXPECT_EQ(results[1].to_vector<int64_t>(), counted);
    EXPECT_EQ(results[2].to_vector<int64_t>(), (std::vector<int64_t>{rows}));
    EXPECT_EQ(executable.bind({{"N", rows}}).result_shapes({{6}})[1], (std::vector<int64_t>{rows}));
  }
  amps_cache_stats stats{};
  stats.size = sizeof(stats);
  amps::check(amps_executable_plan_cache(executable.c(), &stats));
  EXPECT_EQ(stats.entries, 3u) << "a plan for each N, none is interpreted";
}

TEST_P(Dimensions, ComeFromFeedsToo) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {-1, 2}, {"N", ""});
  const auto n = g.op("cast", {dimension(g, "N")}, {{"dtype", DType::f32}})[0];
  g.outputs({g.mul(x, n)});
  const auto executable = device.compile(g);
  const auto feed = tensor({3, 2}, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(executable.run({feed})[0].to_vector<float>(), Numbers(6, 3));
  EXPECT_EQ(executable.bind({{"N", 3}}).run({feed})[0].to_vector<float>(), Numbers(6, 3));
  const std::string wrong = message_of([&] { executable.bind({{"N", 4}}).run({feed}); });
  EXPECT_EQ(wrong, "[run] dimension 'N' is bound to 4, but input 'x' has extent 3 on axis 0");
}

TEST_P(Dimensions, ErrorsSayWhatIsWrong) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {-1}, {"K<=8"});
  g.outputs({g.mul(x, g.op("cast", {dimension(g, "N")}, {{"dtype", DType::f32}})[0])});
  const auto executable = device.compile(g);
  const auto feed = tensor({1}, {2});
  EXPECT_EQ(message_of([&] { executable.run({feed}); }),
            "[run] nothing tells dimension 'N': no feed has it, so it must be bound");
  EXPECT_EQ(message_of([&] {
              executable.bind({{"M", 1}});
            }),
            "[bind] the graph has no dimension 'M'; it has K, N");
  EXPECT_EQ(message_of([&] { executable.bind({{"N", -1}}); }), "[bind] dimension 'N' cannot be -1");
  EXPECT_EQ(message_of([&] {
              executable.bind({{"K", 9}});
            }),
            "[bind] dimension 'K' is 9, but at most 8 is allowed");
  const auto both = executable.bind({{"K", 1}}).bind({{"N", 5}});
  EXPECT_EQ(both.run({feed})[0].to_vector<float>(), Numbers{10});
  EXPECT_EQ(both.bind({{"N", 0}}).run({feed})[0].to_vector<float>(), Numbers{0});
  EXPECT_NE(message_of([&] { dimension(g, "N+1"); }).find("[dimension] 'N+1' is no name"),
            std::string::npos);
}

TEST_P(Dimensions, AReshapeThatDoesNotFitIsAnError) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {-1}, {"K"});
  const auto shape = g.reshape(dimension(g, "N"), {.shape = {1}});
  g.outputs({g.reduce_sum(g.op("reshape", {x, shape})[0])});
  const auto executable = device.compile(g);
  const auto feed = tensor({2}, {3, 4});
  EXPECT_EQ(executable.bind({{"N", 2}}).run({feed})[0].to_vector<float>(), Numbers{7});
  EXPECT_NE(message_of([&] {
              executable.bind({{"N", 3}}).run({feed});
            }).find("[reshape] an input of shape [2] has 2 elements, shape [3] has 3"),
            std::string::npos);
}

// nonzero's result has a shape that depends on elements: this graph is interpreted.
TEST_P(Dimensions, ReachGraphsThatAreInterpreted) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {-1});
  const auto n = dimension(g, "N");
  g.outputs({g.mul(g.op("nonzero", {x})[0], n)});
  const auto executable = device.compile(g);
  const auto result = executable.bind({{"N", 10}}).run({tensor({4}, {0, 1, 0, 1})})[0];
  EXPECT_EQ(result.to_vector<int64_t>(), (std::vector<int64_t>{10, 30}));
}

TEST_P(Dimensions, AreKeptInFiles) {
  amps::Graph g;
  const auto x = g.input("x", DType::f32, {});
  g.outputs({g.mul(x, g.op("cast", {dimension(g, "N")}, {{"dtype", DType::f32}})[0])});
  const std::string bytes = device.compile(g).bytes();
  const auto loaded = device.load(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(loaded.bind({{"N", 7}}).run({tensor({}, {2})})[0].to_vector<float>(), Numbers{14});
}

INSTANTIATE_TEST_SUITE_P(Devices, Dimensions, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
