// SPDX-License-Identifier: Apache-2.0
// One function for eager values and values of a graph.
#include <gtest/gtest.h>

#include <cmath>

#include "anymps/anymps.hpp"
#include "api/error_of.h"

namespace {

using amps::DType;

// What a compiler lowers: options, an optional input that is left out, several results, a constant.
template <typename Builder>
auto block(Builder& b, typename Builder::Value x, typename Builder::Value w) {
  const auto h = b.gelu(b.matmul(x, w), {.approximate = "tanh"});
  const auto parts = b.split(h, 2, {.axis = -1});
  const auto gated = b.mul(parts[0], b.sigmoid(parts[1]));
  const auto scaled = b.add(gated, b.constant({2}, {0.5f, -0.5f}));
  const auto sum = b.reduce_sum(b.mul(scaled, b.scalar(2)), {.axes = {0}});
  const auto normal = b.bind("softmax", {{"axis", -1}});
  return b.sub(normal({b.neg(sum)})[0], normal({sum})[0]);
}

class Lowering : public ::testing::TestWithParam<const char*> {};

TEST_P(Lowering, ComputesAtOnceOrBuildsAGraph) {
  const auto device = amps::Device::get(GetParam());
  const std::vector<float> x{1, -2, 3, 0.5f, 0, -1}, w{1, 2, 3, 4, -1, -2, -3, -4, 0.5f, 0, 1, 0};
  amps::Eager eager(device);
  const auto feed = eager.constant(DType::f32, {2, 3}, x.data());
  const auto at_once = block(eager, feed, eager.constant(DType::f32, {3, 4}, w.data()));
  amps::Graph g;
  g.outputs({block(g, g.input("x", DType::f32, {2, 3}), g.constant({3, 4}, w))});
  const auto from_graph = device.compile(g).run({feed})[0];
  ASSERT_EQ(at_once.shape(), from_graph.shape());
  const auto a = at_once.to_vector<float>(), b = from_graph.to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
  EXPECT_NEAR(a[0] + a[1], 0, 1e-6);
  EXPECT_GT(std::abs(a[0]), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Devices, Lowering, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Lowering, ErrorsNameTheOp) {
  amps::Eager eager(amps::Device::get("cpu"));
  const auto x = eager.constant({2}, {1, 2});
  const auto message = [&](auto&& fn) { return amps::testing::message_of(fn).substr(0, 8); };
  EXPECT_EQ(message([&] { eager.matmul(x, eager.constant({3}, {1, 2, 3})); }), "[matmul]");
  EXPECT_EQ(message([&] {
              eager.bind("matmul")({x, eager.constant({3}, {1, 2, 3})});
            }),
            "[matmul]");
  EXPECT_EQ(message([&] { eager.bind("matmul", {{"axis", 1}}); }), "[matmul]");
  EXPECT_EQ(message([&] { eager.bind("no_such_op"); }), "[op] the");
}

}  // namespace
