// SPDX-License-Identifier: Apache-2.0
// Products and depthwise convolutions without oneDNN, against the reference; and weights packed
// without oneDNN, against its reorder.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>

#include "against_reference.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/depthwise_simd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/linear/packing/weight_packing.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::KernelCase;
using testing::random_f32;
using testing::TestInputs;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

class OwnProducts : public ::testing::Test {
  void SetUp() override {
    if (!cpu::gemm_is_here()) GTEST_SKIP() << "no AVX2";
  }
};

// Depthwise convolutions have the first five.
constexpr const char* kActivations[] = {"none",         "relu",       "clamp",   "hard_swish",
                                        "hard_sigmoid", "silu",       "sigmoid", "tanh",
                                        "elu",          "leaky_relu", "gelu",    "gelu_tanh"};

NamedAttrs with_activation(NamedAttrs attrs, size_t i, const char* alpha, const char* beta) {
  attrs.push_back({"activation", kActivations[i % std::size(kActivations)]});
  attrs.push_back({alpha, 0.2});
  attrs.push_back({beta, 0.7});
  return attrs;
}

TEST_F(OwnProducts, PointwiseConvolutions) {
  size_t number = 0;
  for (const int64_t channels : {1, 5, 16, 24, 40, 64, 72, 160})
    for (const Shape& pixels : {Shape{1, 1}, Shape{2, 3}, Shape{7, 1}, Shape{5, 13}})
      for (const int64_t depth : {2, 3, 33}) {
        SCOPED_TRACE(fmt::format("{} -> {} @ {}", depth, channels, to_string(pixels)));
        TestInputs inputs{random_f32({2, pixels[0], pixels[1], depth}, 1),
                          random_f32({channels, depth, 1, 1}, 2), std::nullopt, std::nullopt};
        if (number % 2) inputs[2] = random_f32({channels}, 3);
        if (number % 3) inputs[3] = random_f32({2, pixels[0], pixels[1], channels}, 4);
        expect_same({"conv",
                     "gemm",
                     inputs,
                     with_activation({{"layout", "channels_last"}}, number++, "alpha", "beta"),
                     1,
                     {1}},
                    5e-5);
      }
}

TEST_F(OwnProducts, PointwiseConvolutionsRefuseOthers) {
  const auto refused = [](Shape w, NamedAttrs attrs, std::vector<size_t> constant) {
    attrs.push_back({"layout", "channels_last"});
    KernelCase test{"conv", "gemm", {random_f32({1, 6, 6, 4}, 1), random_f32(std::move(w), 2)},
                    attrs,  1,      std::move(constant)};
    return !testing::run_cpu_kernel(test).kernel;
  };
  EXPECT_FALSE(refused({8, 4, 1, 1}, {}, {1}));
  EXPECT_TRUE(refused({8, 4, 1, 1}, {}, {}));
  EXPECT_TRUE(refused({8, 4, 3, 3}, {}, {1}));
  EXPECT_TRUE(refused({8, 4, 1, 1}, {{"strides", Ints{2, 2}}}, {1})) << "three pixels across";
  EXPECT_TRUE(refused({8, 4, 1, 1}, {{"pads", Ints{1, 0, 0, 0}}}, {1}));
  EXPECT_TRUE(refused({8, 2, 1, 1}, {{"groups", 2}}, {1}));
}

TEST_F(OwnProducts, Matmuls) {
  size_t number = 0;
  for (const int64_t rows : {1, 2, 8, 30})
    for (const int64_t columns : {2, 17, 64, 130})
      for (const bool transposed : {false, true}) {
        const bool constant = (number / 2 + number / 8) % 2;  // else packed at the run
        SCOPED_TRACE(fmt::format("{} x {} {} {}", rows, columns, transposed, constant));
        TestInputs inputs{random_f32({3, rows, 21}, 1),
                          transposed ? random_f32({columns, 21}, 2) : random_f32({21, columns}, 2),
                          std::nullopt, std::nullopt};
        if (number % 2) inputs[2] = random_f32({columns}, 3);
        if (number % 3) inputs[3] = random_f32({3, rows, columns}, 4);
        expect_same(
            {"matmul", "gemm", inputs,
             with_activation({{"transpose_b", transposed}}, number++, "act_alpha", "act_beta"), 1,
             constant ? std::vector<size_t>{1} : std::vector<size_t>{}},
            5e-5);
      }
}

// Sums in several parts, over one or more chunks of rows, with a residual and an activation, which
// belong to the first and the last part.
TEST_F(OwnProducts, DeepMatmuls) {
  size_t number = 0;
  for (const int64_t depth : {768, 769, 1281, 3000})
    for (const int64_t rows : {1, 9, 60, 250})
      for (const int64_t columns : {5, 70}) {
        if (rows == 250 && depth == 3000) continue;
        SCOPED_TRACE(fmt::format("{} x {} x {}", rows, depth, columns));
        TestInputs inputs{random_f32({rows, depth}, 1), random_f32({depth, columns}, 2),
                          std::nullopt, std::nullopt};
        if (number % 2) inputs[2] = random_f32({columns}, 3);
        if (number % 3) inputs[3] = random_f32({rows, columns}, 4);
        expect_same(
            {"matmul", "gemm", inputs, with_activation({}, number++, "act_alpha", "act_beta"), 1,
             std::vector<size_t>{1}},
            3e-4);
      }
}

TEST_F(OwnProducts, StridedPointwiseConvolutions) {
  struct Case {
    Shape image;  // batch, then the extents
    Ints strides;
  };
  const Case cases[] = {{{1, 14, 14}, {2, 2}}, {{3, 9, 13}, {2, 3}}, {{2, 5, 60}, {1, 2}},
                        {{2, 12, 4}, {5, 1}},  {{2, 31}, {3}},       {{1, 1, 130}, {2, 1}}};
  size_t number = 0;
  for (const Case& c : cases)
    for (const int64_t channels : {5, 64, 130})
      for (const int64_t depth : {3, 40}) {
        SCOPED_TRACE(fmt::format("{} -> {} @ {}", depth, channels, to_string(c.image)));
        Shape x = c.image, y = c.image, w{channels, depth};
        for (size_t i = 0; i < c.strides.size(); ++i) {
          y[i + 1] = (y[i + 1] - 1) / c.strides[i] + 1;
          w.push_back(1);
        }
        x.push_back(depth);
        y.push_back(channels);
        TestInputs inputs{random_f32(x, 1), random_f32(w, 2), std::nullopt, std::nullopt};
        if (number % 2) inputs[2] = random_f32({channels}, 3);
        if (number % 3) inputs[3] = random_f32(y, 4);
        expect_same({"conv",
                     "gemm",
                     inputs,
                     with_activation({{"layout", "channels_last"}, {"strides", c.strides}},
                                     number++, "alpha", "beta"),
                     1,
                     {1}},
                    5e-5);
      }
}

// Vectors of a tile go through gelu side by side: what lies far in the tail of one, or is no
// number, must not show in the others.
TEST_F(OwnProducts, GeluOfATileIsThatOfEachNumber) {
  constexpr int64_t kRows = 7, kColumns = 64;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const float rows[kRows] = {-8, 1, -6.5f, kNaN, -12.5f, 0.3f, 100};
  TestTensor diagonal(DType::kF32, {kRows, kRows}), ones(DType::kF32, {kRows, kColumns});
  auto* a = static_cast<float*>(diagonal.ptr());
  for (int64_t i = 0; i < kRows * kRows; ++i) a[i] = i % (kRows + 1) == 0 ? rows[i / kRows] : 0.0f;
  for (int64_t i = 0; i < kRows * kColumns; ++i) static_cast<float*>(ones.ptr())[i] = 1;
  KernelCase test{"matmul", "gemm", {diagonal, ones}, {{"activation", "gelu"}}, 1, {1}};
  const testing::KernelResult result = testing::run_cpu_kernel(test);
  ASSERT_TRUE(result.kernel) << result.why;
  const auto* y = static_cast<const float*>(result.outputs[0].ptr());
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const double x = rows[i / kColumns], expected = 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(y[i]));
    else
      EXPECT_NEAR(y[i], expected, 1e-5 * std::abs(expected)) << "gelu of " << x;
  }
}

TEST_F(OwnProducts, DepthwiseConvolutions) {
  if (!cpu::depthwise_is_here()) GTEST_SKIP() << "no AVX2";
  struct Window {
    Ints kernel, strides, dilations, pads;
  };
  const Window windows[] = {
      {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
      {{5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}}, {{3, 2}, {1, 3}, {2, 2}, {0, 3, 4, 1}},
      {{3, 5}, {2, 1}, {1, 1}, {1, 4, 0, 3}}, {{1, 4}, {2, 1}, {1, 1}, {0, 0, 0, 0}}};
  size_t number = 0;
  for (const Window& window : windows) {
    if (cpu::isa() == cpu::Isa::kAvx2 && window.strides[1] != 1) continue;  // oneDNN's
    for (const int64_t channels : {2, 16, 24, 32, 41, 72})
      for (const Shape& image : {Shape{7, 7}, Shape{5, 16}, Shape{14, 23}}) {
        SCOPED_TRACE(
            fmt::format("window {}, {} channels @ {}", number, channels, to_string(image)));
        TestInputs inputs{random_f32({2, image[0], image[1], channels}, 1),
                          random_f32({channels, 1, window.kernel[0], window.kernel[1]}, 2)};
        if (number % 2) inputs.push_back(random_f32({channels}, 3));
        expect_same({"conv",
                     "depthwise",
                     inputs,
                     with_activation({{"layout", "channels_last"},
                                      {"groups", channels},
                                      {"strides", window.strides},
                                      {"dilations", window.dilations},
                                      {"pads", window.pads}},
                                     number++ % 5, "alpha", "beta"),
                     1,
                     {1}},
                    5e-5);
      }
  }
}

TEST_F(OwnProducts, DepthwiseWithResidualAndInOneDimension) {
  if (!cpu::depthwise_is_here()) GTEST_SKIP() << "no AVX2";
  expect_same({"conv",
               "depthwise",
               {random_f32({2, 9, 24}, 1), random_f32({24, 1, 3}, 2), random_f32({24}, 3),
                random_f32({2, 9, 24}, 4)},
               {{"layout", "channels_last"}, {"groups", 24}, {"pads", Ints{1, 1}}},
               1,
               {1}},
              5e-5);
}

// Layouts of convolutions and products that oneDNN chose on AVX2 and AVX-512, with odd extents.
TEST(WeightPacking, IsOneDnnsReorder) {
  using dnnl::memory;
  using Tag = memory::format_tag;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  struct Case {
    memory::dims dims;
    Tag from, to;
  };
  const Case cases[] = {
      {{40, 13, 1, 1}, Tag::abcd, Tag::Acdb16a},     {{33, 7, 3, 3}, Tag::abcd, Tag::Acdb32a},
      {{130, 5, 3, 2}, Tag::abcd, Tag::Acdb64a},     {{24, 20, 1, 1}, Tag::abcd, Tag::ABcd8b8a},
      {{100, 70}, Tag::ab, Tag::BA16a64b},           {{100, 70}, Tag::ba, Tag::BA16a64b},
      {{40, 1, 1, 5, 5}, Tag::abcde, Tag::Abcde16a}, {{17, 19, 3, 3}, Tag::cdba, Tag::Acdb8a},
      {{16, 16, 1, 1}, Tag::abcd, Tag::aBcd16b},
  };
  std::mt19937 random(1);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.dims[0]);
    const memory::desc from(one.dims, memory::data_type::f32, one.from);
    const memory::desc to(one.dims, memory::data_type::f32, one.to);
    ASSERT_TRUE(cpu::can_pack_weights(from, to));
    std::vector<float> plain(from.get_size() / 4), expected(to.get_size() / 4, 7.0f);
    for (float& x : plain) x = static_cast<float>(random());
    std::vector<float> packed(expected.size(), 9.0f);
    memory source(from, engine, plain.data()), target(to, engine, expected.data());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
    cpu::pack_weights(from, plain.data(), to, packed.data());
    EXPECT_EQ(packed, expected);
  }
  const memory::desc plain({4, 4}, memory::data_type::f32, Tag::ab);
  EXPECT_FALSE(cpu::can_pack_weights(plain, plain));
}

}  // namespace
}  // namespace anymps
