// SPDX-License-Identifier: Apache-2.0
// Convolutions that go through an image row by row, together: the same bits as one by one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/depthwise_simd.h"
#include "support/device_tensor.h"

namespace anymps {
namespace {

using testing::TestTensor;
using Ints = std::vector<int64_t>;

// A 1x1 convolution, a depthwise one, and another 1x1 one. 0 channels: it is not there.
struct Block {
  Shape image;  // [batch, height, width]
  int64_t in = 0, middle = 0, out = 0;
  int64_t kernel = 3;
  Ints strides{1, 1}, dilations{1, 1}, pads{1, 1, 1, 1};
  bool residual = false;  // the block's input
  int threads = 1;        // with up to so many they go together
};

class JoinedSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::depthwise_is_here()) GTEST_SKIP() << "no AVX2";
    before_ = get_driver("cpu").max_threads();
    get_driver("cpu").set_max_threads(4);
  }
  void TearDown() override {
    unsetenv("ANYMPS_JOIN");
    if (before_ > 0) get_driver("cpu").set_max_threads(before_);
  }

  static Value* random_constant(Graph& graph, Shape shape, uint64_t seed) {
    const TestTensor values = TestTensor(DType::kF32, std::move(shape)).fill(seed, -0.5, 0.5);
    return graph.constant(
        Constant::copy(DType::kF32, values.shape(),
                       {static_cast<const std::byte*>(values.ptr()), values.desc().bytes()}));
  }

  static std::unique_ptr<Graph> graph_of(const Block& block) {
    auto graph = std::make_unique<Graph>();
    Value* x = graph->input(
        "x", DType::kF32,
        {block.image[0], block.image[1], block.image[2], block.in > 0 ? block.in : block.middle});
    const auto pointwise = [&](Value* from, int64_t in, int64_t out, const char* activation,
                               uint64_t seed) {
      std::vector<Value*> inputs{from, random_constant(*graph, {out, in, 1, 1}, seed),
                                 random_constant(*graph, {out}, seed + 1)};
      if (block.residual && seed == 5) inputs.push_back(x);
      return graph->add("conv", inputs,
                        {{"layout", "channels_last"}, {"activation", activation}, {"beta", 6.0}});
    };
    Value* y = block.in > 0 ? pointwise(x, block.in, block.middle, "clamp", 1) : x;
    y = graph->add("conv",
                   {y, random_constant(*graph, {block.middle, 1, block.kernel, block.kernel}, 3),
                    random_constant(*graph, {block.middle}, 4)},
                   {{"layout", "channels_last"},
                    {"groups", block.middle},
                    {"strides", block.strides},
                    {"dilations", block.dilations},
                    {"pads", block.pads},
                    {"activation", "hard_swish"}});
    if (block.out > 0) y = pointwise(y, block.middle, block.out, "none", 5);
    graph->rename(y, "y");
    graph->set_outputs({y});
    return graph;
  }

  struct Outcome {
    std::vector<float> elements;
    size_t steps = 0, arena = 0;
  };
  static Outcome run(const Graph& graph, const Block& block, const char* join,
                     CompileOptions options) {
    setenv("ANYMPS_JOIN", join, 1);
    const DevicePtr device = Device::get("cpu");
    Executable executable(device, graph, options);
    const Shape shape{block.image[0], block.image[1], block.image[2],
                      block.in > 0 ? block.in : block.middle};
    const TestTensor feed = TestTensor(DType::kF32, shape).fill(7, -1, 1);
    const Tensor x = device->from_host(feed.desc(), feed.ptr());
    std::vector<Tensor> results(1);
    if (!options.aliases.empty()) results[0] = x;
    executable.run({x}, results);
    const auto plan = executable.plan({shape});
    return {testing::elements(*device, results[0]), plan->steps().size(),
            plan->memory().arena_bytes};
  }
  static bool same_bits(const Outcome& a, const Outcome& b) {
    return a.elements.size() == b.elements.size() &&
           std::memcmp(a.elements.data(), b.elements.data(), a.elements.size() * 4) == 0;
  }

  int before_ = 0;
};

TEST_F(JoinedSteps, GiveTheSameBitsAsOneByOne) {
  const Block blocks[] = {
      {{1, 112, 112}, 8, 32, 24, 3, {2, 2}, {1, 1}, {1, 1, 1, 1}, false, 4},
      {{1, 96, 96}, 12, 48, 12, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}, true, 4},
      {{3, 90, 80}, 5, 41, 70, 5, {1, 1}, {1, 1}, {2, 2, 2, 2}, false, 2},
      {{2, 90, 60}, 16, 33, 17, 3, {3, 2}, {2, 1}, {0, 2, 3, 1}},
      {{1, 90, 60}, 16, 33, 17, 2, {5, 5}, {1, 1}, {0, 0, 0, 0}},
      {{1, 70, 70}, 0, 48, 16},
      {{1, 70, 70}, 16, 48, 0},
  };
  for (const Block& block : blocks) {
    SCOPED_TRACE(fmt::format("{} x {} -> {} -> {}", to_string(block.image), block.in, block.middle,
                             block.out));
    const auto graph = graph_of(block);
    CompileOptions options;
    options.threads = 1;
    const Outcome apart = run(*graph, block, "off", options);
    EXPECT_EQ(apart.steps, 1u + (block.in > 0) + (block.out > 0));
    for (const int threads : {1, 2, 4}) {
      options.threads = threads;
      const Outcome joined = run(*graph, block, "on", options);
      EXPECT_TRUE(same_bits(joined, apart)) << threads << " threads";
      // On AVX2 oneDNN has windows that skip columns.
      if (cpu::isa() == cpu::Isa::kAvx2 && block.strides[1] != 1) continue;
      if (threads > block.threads) continue;
      EXPECT_EQ(joined.steps, 1u) << threads << " threads";
      if (threads > 1) continue;
      EXPECT_LT(joined.arena, apart.arena);
    }
  }
}

// Small results stay in the caches: each layer has all threads to itself.
TEST_F(JoinedSteps, SmallImagesStayApart) {
  const Block block{{1, 14, 14}, 64, 384, 64};
  EXPECT_EQ(run(*graph_of(block), block, "on", {}).steps, 3u);
}

TEST_F(JoinedSteps, AResultThatOthersReadIsWritten) {
  const Block block{{1, 60, 60}, 16, 64, 16};
  const auto graph = graph_of(block);
  Value* y = graph->outputs()[0];
  Value* middle = y->producer->input(0);
  graph->set_outputs({y, graph->add("abs", {middle}, {}, "z")});
  const DevicePtr device = Device::get("cpu");
  CompileOptions options;
  options.threads = 1;
  Executable executable(device, *graph, options);
  const auto plan = executable.plan({Shape{1, 60, 60, 16}});
  EXPECT_EQ(plan->steps().size(), 3u) << "the first two are one";
}

// The block's input is read again for the rows of the next band.
TEST_F(JoinedSteps, AResultInTheMemoryOfTheFeedIsNotWrittenTooEarly) {
  const Block block{{1, 60, 60}, 16, 64, 16};
  const auto graph = graph_of(block);
  CompileOptions options;
  options.threads = 1;
  const Outcome expected = run(*graph, block, "off", options);
  options.aliases = {{0, 0}};
  EXPECT_TRUE(same_bits(run(*graph, block, "on", options), expected));
}

TEST_F(JoinedSteps, ACheckSeesEachStep) {
  const Block block{{1, 60, 60}, 16, 64, 16};
  CompileOptions options;
  options.check = true;
  EXPECT_EQ(run(*graph_of(block), block, "on", options).steps, 3u);
}

}  // namespace
}  // namespace anymps
