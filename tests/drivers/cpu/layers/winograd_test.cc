// SPDX-License-Identifier: Apache-2.0
// 3x3 convolutions by Winograd's method: the reference's results for odd extents, paddings and
// epilogues; infinities that stay where they belong; the same bits for any number of threads; and
// rounding errors beside those of a direct sum.
#include <cstring>

#include "base/thread_pool.h"
#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/layers/winograd/winograd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "semantics/fused_activation.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::KernelCase;
using testing::KernelResult;
using testing::kInf;
using testing::kNan;
using testing::random_f32;
using testing::TestInputs;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

class Winograd : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!cpu::gemm_is_here()) GTEST_SKIP() << "no AVX2";
    setenv("ANYMPS_WINOGRAD", GetParam(), 1);
  }
  void TearDown() override { unsetenv("ANYMPS_WINOGRAD"); }
};

KernelCase conv(TestInputs inputs, Ints pads = {1, 1, 1, 1}, NamedAttrs attrs = {}) {
  attrs.push_back({"layout", "channels_last"});
  attrs.push_back({"pads", std::move(pads)});
  return {"conv", "winograd", std::move(inputs), std::move(attrs), 1, {1}};
}

TestTensor weights(int64_t out, int64_t in) { return random_f32({out, in, 3, 3}, 2, -0.3, 0.3); }

TEST_P(Winograd, ShapesAndEpilogues) {
  const std::vector<std::string> activations = activation_choices();
  const Ints paddings[] = {{1, 1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2, 2}, {0, 1, 2, 1}, {2, 0, 1, 0}};
  size_t number = 0;
  for (const int64_t in : {1, 16, 19, 70})
    for (const int64_t out : {1, 16, 40, 64, 131})
      for (const Shape& image : {Shape{3, 3}, Shape{4, 9}, Shape{14, 7}, Shape{17, 18}}) {
        const Ints& pads = paddings[number % std::size(paddings)];
        SCOPED_TRACE(fmt::format("{} -> {} @ {}, pads {}", in, out, to_string(image), number % 5));
        const int64_t batch = 1 + static_cast<int64_t>(number % 2);
        TestInputs inputs{random_f32({batch, image[0], image[1], in}, 1), weights(out, in),
                          std::nullopt, std::nullopt};
        if (number % 2) inputs[2] = random_f32({out}, 3);
        if (number % 3)
          inputs[3] = random_f32(
              {batch, image[0] + pads[0] + pads[2] - 2, image[1] + pads[1] + pads[3] - 2, out}, 4);
        expect_same(conv(inputs, pads,
                         {{"activation", activations[number % activations.size()]},
                          {"alpha", 0.2},
                          {"beta", 0.7}}),
                    5e-5);
        ++number;
      }
}

TEST_P(Winograd, ImagesSmallerThanATile) {
  for (const Shape& image : {Shape{1, 1}, Shape{1, 5}, Shape{2, 1}})
    expect_same(
        conv({random_f32({3, image[0], image[1], 20}, 1), weights(24, 20), random_f32({24}, 3)}),
        5e-5);
}

TEST_P(Winograd, LongSumsAndWeightsOfTheOtherLayout) {
  expect_same(conv({random_f32({1, 5, 6, 1300}, 1), random_f32({17, 1300, 3, 3}, 2, -0.03, 0.03)}),
              5e-5);
  expect_same(conv({random_f32({1, 5, 6, 20}, 1), random_f32({3, 3, 20, 33}, 2, -0.3, 0.3)},
                   {1, 1, 1, 1}, {{"weights_layout", "*IO"}}),
              5e-5);
}

// What a direct sum has where a window meets one of these; elsewhere nothing may change.
TEST_P(Winograd, NumbersThatAreNotFiniteStayWhereTheyAre) {
  for (const double special : {kInf, -kInf, kNan}) {
    TestTensor x = random_f32({1, 13, 14, 33}, 1);
    x.put({0, 6, 5, 17}, special);
    x.put({0, 12, 13, 32}, special);
    expect_same(conv({x, weights(70, 33), random_f32({70}, 3)}), 5e-5);
  }
}

TEST_P(Winograd, SumsThatAreFiniteThoughTheirPartsAreNot) {
  TestTensor x = random_f32({1, 9, 9, 16}, 1);
  x.put({0, 4, 4, 3}, 3e38);
  x.put({0, 4, 5, 3}, -3e38);
  TestTensor w = weights(16, 16);
  const auto expected = testing::expected_of(conv({x, w}));
  for (const double y : expected[0].values()) ASSERT_TRUE(std::isfinite(y));
  // Beside 1e38 the small terms are lost, so only finite is asked for, and 1e-5 of the largest.
  KernelCase test = conv({x, w});
  const KernelResult result = testing::run_cpu_kernel(test);
  ASSERT_TRUE(result.kernel) << result.why;
  const auto actual = result.outputs[0].values();
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::abs(actual[i] - expected[0].values()[i]),
              1e-5 * (std::abs(expected[0].values()[i]) + 1e2))
        << i;
}

TEST_P(Winograd, AnyNumberOfThreadsGivesTheSameBits) {
  ThreadPool::get().resize(16);

  for (const Shape& x : {Shape{3, 20, 22, 40}, Shape{1, 150, 190, 96}}) {
    KernelCase test = conv({random_f32(x, 1), weights(72, x[3])});
    test.threads = 1;
    const KernelResult one = testing::run_cpu_kernel(test);
    ASSERT_TRUE(one.kernel) << one.why;
    for (const int threads : {2, 3, 8, 16}) {
      test.threads = threads;
      const KernelResult many = testing::run_cpu_kernel(test);
      EXPECT_EQ(
          std::memcmp(one.outputs[0].ptr(), many.outputs[0].ptr(), one.outputs[0].desc().bytes()),
          0)
          << threads;
    }
  }
}

// Root mean square of the differences from sums in f64.
double error_of(const TestTensor& actual, const std::vector<double>& exact) {
  double sum = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double e = static_cast<double>(actual.data<float>()[i]) - exact[i];
    sum += e * e;
  }
  return std::sqrt(sum / static_cast<double>(exact.size()));
}

TEST_P(Winograd, RoundingErrorsAreThoseOfADirectSumTimesAtMostFour) {
  for (const int64_t in : {16, 64, 300})
    for (const double low : {-1.0, 0.0}) {  // signed, and after a relu
      KernelCase test = conv({random_f32({1, 16, 16, in}, 1, low, 1), weights(16, in)});
      KernelCase wide = test;
      for (auto& input : wide.inputs) {
        TestTensor copy(DType::kF64, input->shape());
        input = copy.set(input->values());
      }
      const std::vector<double> exact = testing::expected_of(wide)[0].values();
      const KernelResult own = testing::run_cpu_kernel(test);
      test.kernel = "onednn";
      const KernelResult direct = testing::run_cpu_kernel(test);
      ASSERT_TRUE(own.kernel && direct.kernel) << own.why << direct.why;
      EXPECT_LE(error_of(own.outputs[0], exact), 4 * error_of(direct.outputs[0], exact))
          << in << " " << low;
    }
}

INSTANTIATE_TEST_SUITE_P(Tiles, Winograd, ::testing::Values("2", "4", "2 late", "4 late"),
                         [](const auto& info) {
                           const std::string way = info.param;
                           return "Of" + way.substr(0, 1) + (way.size() > 1 ? "Late" : "");
                         });

class WinogradChoice : public ::testing::Test {
  void SetUp() override {
    if (!cpu::gemm_is_here()) GTEST_SKIP() << "no AVX2";
  }
  void TearDown() override { unsetenv("ANYMPS_WINOGRAD"); }
};

std::string why_not(KernelCase test) {
  const KernelResult result = testing::run_cpu_kernel(test);
  return result.kernel ? "" : result.why;
}

TEST_F(WinogradChoice, RefusesOtherConvolutions) {
  setenv("ANYMPS_WINOGRAD", "4", 1);
  const TestTensor x = random_f32({1, 12, 12, 32}, 1), w = weights(32, 32);
  EXPECT_EQ(why_not(conv({x, w})), "");
  KernelCase variable = conv({x, w});
  variable.constant.clear();
  EXPECT_EQ(why_not(variable), "the weights are not constant");
  EXPECT_EQ(why_not(conv({x, random_f32({32, 32, 5, 5}, 2)})),
            "the window is not 3x3, or takes other steps");
  for (const char* steps : {"strides", "dilations"})
    EXPECT_EQ(why_not(conv({x, w}, {1, 1, 1, 1}, {{steps, Ints{1, 2}}})),
              "the window is not 3x3, or takes other steps");
  EXPECT_EQ(why_not(conv({x, weights(32, 16)}, {1, 1, 1, 1}, {{"groups", 2}})), "groups");
  EXPECT_EQ(why_not(conv({testing::spread(x), w})), "strides of input 0");
  KernelCase first = conv({x, w});
  first.attrs = {{"pads", Ints{1, 1, 1, 1}}};
  first.inputs = {random_f32({1, 32, 12, 12}, 1), w};
  EXPECT_EQ(why_not(first), "channels are not last");
  EXPECT_EQ(why_not(conv({random_f32({1, 2, 2, 5000}, 1), weights(1, 5000)})), "5000 channels");
  setenv("ANYMPS_WINOGRAD", "off", 1);
  EXPECT_EQ(why_not(conv({x, w})), "ANYMPS_WINOGRAD=off");
}

std::string tiles_for(int64_t images, int64_t extent, int64_t in, int64_t out) {
  cpu::WinogradTiles tiles;
  tiles.images = images;
  tiles.height = tiles.width = tiles.out_height = tiles.out_width = extent;
  tiles.in_channels = in;
  tiles.out_channels = out;
  tiles.top = tiles.left = 1;
  std::string why;
  const bool worth = cpu::cut_into_tiles(tiles, why);
  EXPECT_EQ(why.empty(), worth);
  return worth ? cpu::describe_tiles(tiles) : "none";
}

TEST_F(WinogradChoice, IsMadeByCost) {
  EXPECT_EQ(tiles_for(1, 56, 64, 64), "4x4");
  // Where weights are many they are transformed late: reading them takes longer.
  EXPECT_EQ(tiles_for(1, 28, 128, 128), "4x4");
  EXPECT_EQ(tiles_for(1, 14, 256, 256), "2x2");
  // Few pixels for many weights: the smaller tiles' are fewer, and in the end a direct sum's.
  EXPECT_EQ(tiles_for(1, 7, 512, 512), "2x2 late");
  EXPECT_EQ(tiles_for(1, 4, 512, 512), "none");
  EXPECT_EQ(tiles_for(8, 7, 512, 512), "4x4");
  // Images, and layers with so few channels that the transforms are most of the work.
  EXPECT_EQ(tiles_for(1, 224, 3, 64), "none");
  EXPECT_EQ(tiles_for(1, 112, 8, 8), "none");
}

}  // namespace
}  // namespace anymps
