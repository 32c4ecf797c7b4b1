// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of bytes: the tiles with and without VNNI against plain loops, with the
// largest numbers there are, and the kernels against the reference.
#include <gtest/gtest.h>

#include <random>

#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/integer/int_operands.h"

namespace anymps {
namespace {

using cpu::find_vnni;
using cpu::has_vnni;
using cpu::int_packing;
using cpu::int_packing_without_vnni;
using cpu::IntMatrix;
using cpu::IntPacking;
using cpu::IntProduct;
using cpu::Isa;
using cpu::load_byte;
using cpu::multiply_int;
using cpu::pack_int_panel;
using cpu::pack_int_row;
using cpu::Processor;
using testing::KernelCase;
using testing::TestInputs;
using testing::TestTensor;

std::vector<uint8_t> extreme_bytes(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) {
    const auto number = random();
    constexpr uint8_t kEnds[] = {0, 127, 128, 255};
    byte = number % 2 ? kEnds[number / 2 % 4] : static_cast<uint8_t>(number >> 8);
  }
  return bytes;
}

struct TileCase {
  int64_t rows, depth, columns;
  bool signed_a;
};

void expect_exact(const IntPacking& packing, const TileCase& t) {
  SCOPED_TRACE(fmt::format("bytes {}, {} lanes: {} x {} x {}, signed a {}", packing.bytes,
                           packing.lanes, t.rows, t.depth, t.columns, t.signed_a));
  const DType a_type = t.signed_a ? DType::kI8 : DType::kU8;
  const DType b_type = t.signed_a ? DType::kU8 : DType::kI8;
  const auto a = extreme_bytes(t.rows * t.depth, 1), b = extreme_bytes(t.depth * t.columns, 2);
  const int64_t words = packing.words(t.depth), full = packing.vectors * packing.lanes;
  std::vector<int32_t> rows(static_cast<size_t>(t.rows * words));
  std::vector<int32_t> panel(static_cast<size_t>(words * full)), y(t.rows * t.columns, -1);
  for (int64_t i = 0; i < t.rows; ++i)
    pack_int_row(packing, a_type, false, a.data() + i * t.depth, t.depth, 1,
                 rows.data() + i * words);
  for (int64_t first = 0; first < t.columns; first += full) {
    IntProduct p;
    p.columns = std::min(full, t.columns - first);
    pack_int_panel(packing, IntMatrix{b_type, t.columns, 1}, false, b.data() + first, t.depth,
                   p.columns, panel.data());
    p.a = rows.data();
    p.a_row = words * 4;
    p.b = panel.data();
    p.rows = t.rows;
    p.words = words;
    p.signed_a = t.signed_a;
    p.y = y.data() + first;
    p.y_row = t.columns;
    multiply_int(packing, p);
  }
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < t.columns; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < t.depth; ++k)
        sum += load_byte(a_type, a.data(), i * t.depth + k) *
               load_byte(b_type, b.data(), k * t.columns + j);
      ASSERT_EQ(y[i * t.columns + j], sum) << "row " << i << ", column " << j;
    }
}

TEST(IntegerTiles, AreExact) {
  for (const IntPacking& packing : {int_packing(), int_packing_without_vnni()})
    for (const int64_t rows : {1, 2, 5, 6, 7, 13})
      for (const int64_t columns : {1, 4, 8, 15, 17, 33, 64, 130})
        for (const int64_t depth : {1, 2, 3, 4, 5, 66, 301})
          for (const bool signed_a : {false, true})
            expect_exact(packing, {rows, depth, columns, signed_a});
}

TEST(IntegerTiles, UseVnniWhereItIs) {
  EXPECT_EQ(int_packing().bytes, has_vnni() && int_packing().lanes >= 8);
  EXPECT_FALSE(int_packing_without_vnni().bytes);
  Processor p;
  p.leaves = {{0, 0, 0x20, 0, 0, 0}, {7, 0, 1, 0, 1u << 11, 0}, {7, 1, 1u << 4, 0, 0, 0}};
  EXPECT_TRUE(find_vnni(p, Isa::kAvx512));
  EXPECT_TRUE(find_vnni(p, Isa::kAvx2));
  EXPECT_FALSE(find_vnni(p, Isa::kSse4));
  p.leaves = {{0, 0, 0x20, 0, 0, 0}, {7, 0, 0, 0, 1u << 11, 0}, {7, 1, 1u << 4, 0, 0, 0}};
  EXPECT_FALSE(find_vnni(p, Isa::kAvx2)) << "leaf 7 has no subleaf 1";
  p.leaves[1].ecx = 0;
  EXPECT_FALSE(find_vnni(p, Isa::kAvx512));
}

TestTensor bytes(DType dtype, Shape shape, uint64_t seed) {
  const double low = dtype == DType::kI8 ? -128 : 0;
  return TestTensor(dtype, std::move(shape)).fill(seed, low, low + 255);
}

constexpr DType kTypes[][2] = {{DType::kU8, DType::kI8},
                               {DType::kI8, DType::kI8},
                               {DType::kU8, DType::kU8},
                               {DType::kI8, DType::kU8}};

// The same bits for any number of threads, too.
void expect_exact(KernelCase test) {
  for (const int threads : {1, 2, 5}) {
    test.threads = threads;
    testing::expect_same(test, 0);
  }
}

TEST(IntegerKernels, Matmuls) {
  size_t number = 0;
  for (const auto& [a, b] : kTypes)
    for (const int64_t rows : {1, 3, 8, 200})
      for (const int64_t columns : {1, 16, 65, 200})
        for (const int64_t depth : {3, 64}) {
          SCOPED_TRACE(
              fmt::format("{} x {}: {} x {} x {}", name(a), name(b), rows, depth, columns));
          ++number;
          TestInputs inputs{bytes(a, {rows, depth}, 1), bytes(b, {depth, columns}, 2), std::nullopt,
                            std::nullopt};
          if (number % 3) inputs[2] = bytes(a, number % 3 == 2 ? Shape{rows} : Shape{}, 3);
          if (number % 4) inputs[3] = bytes(b, number % 4 == 3 ? Shape{columns} : Shape{}, 4);
          if (number % 5 == 0) inputs[1] = testing::spread(*inputs[1]);
          if (number % 7 == 0) inputs[0] = testing::spread(*inputs[0]);
          expect_exact({"matmul_integer",
                        "panels",
                        inputs,
                        {},
                        1,
                        number % 2 ? std::vector<size_t>{1, 3} : std::vector<size_t>{}});
        }
}

TEST(IntegerKernels, BatchesOfMatmuls) {
  for (const auto& [a, b] : kTypes)
    expect_exact({"matmul_integer",
                  "panels",
                  {bytes(a, {2, 1, 9, 17}, 1), bytes(b, {3, 17, 70}, 2), bytes(a, {9}, 3),
                   bytes(b, {70}, 4)},
                  {}});
}

TEST(IntegerKernels, ScaledMatmuls) {
  size_t number = 0;
  for (const auto& [a, b] : kTypes)
    for (const DType to : {DType::kF32, DType::kU8, DType::kI8})
      for (const char* activation : {"none", "relu", "clamp"}) {
        SCOPED_TRACE(fmt::format("{} x {} to {}, {}", name(a), name(b), name(to), activation));
        ++number;
        TestInputs inputs{bytes(a, {70, 33}, 1), bytes(b, {33, 67}, 2), bytes(a, {}, 3),
                          bytes(b, {67}, 4)};
        inputs.push_back(
            TestTensor(DType::kF32, number % 2 ? Shape{67} : Shape{}).fill(5, 0.0002, 0.002));
        inputs.push_back(number % 3 ? std::optional(TestTensor(DType::kF32, {67}).fill(6, -50, 50))
                                    : std::nullopt);
        if (to != DType::kF32) inputs.push_back(bytes(to, {}, 7));
        expect_exact(
            {"quantized_matmul",
             "panels",
             inputs,
             {{"dtype", to}, {"activation", activation}, {"act_alpha", -20.0}, {"act_beta", 30.0}},
             1,
             {1, 3}});
      }
}

struct ConvWindow {
  Shape image, kernel;
  std::vector<int64_t> strides, dilations, pads;
};
const ConvWindow kWindows[] = {
    {{7, 9}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {{7, 9}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
    {{14, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {{14, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
    {{17, 70}, {3, 5}, {1, 2}, {2, 1}, {2, 0, 1, 3}},
    {{20, 21}, {7, 7}, {3, 3}, {1, 1}, {3, 3, 3, 3}},
    {{3, 4}, {2, 2}, {1, 1}, {3, 2}, {4, 3, 5, 6}},
    {{70}, {3}, {1}, {1}, {1, 1}},
    {{71}, {4}, {2}, {3}, {0, 5}},
    {{5, 6, 7}, {3, 2, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2, 1, 1, 2}},
    {{4, 6, 5}, {2, 3, 1}, {2, 1, 2}, {1, 2, 1}, {0, 2, 0, 1, 2, 0}},
};
struct ConvChannels {
  int64_t in, out, groups;
};

TEST(IntegerKernels, Convolutions) {
  size_t number = 0;
  for (const ConvWindow& window : kWindows)
    for (const ConvChannels& c :
         {ConvChannels{3, 5, 1}, ConvChannels{8, 16, 1}, ConvChannels{6, 4, 2},
          ConvChannels{4, 4, 4}, ConvChannels{5, 10, 5}}) {
      const auto& [x_type, w_type] = kTypes[number++ % std::size(kTypes)];
      SCOPED_TRACE(fmt::format("{}: {} x {}, image {}, {} -> {}, {} groups", number, name(x_type),
                               name(w_type), to_string(window.image), c.in, c.out, c.groups));
      Shape x{2, c.in}, w{c.out, c.in / c.groups};
      for (const int64_t extent : window.image) x.push_back(extent);
      for (const int64_t extent : window.kernel) w.push_back(extent);
      NamedAttrs attrs{{"strides", window.strides},
                       {"dilations", window.dilations},
                       {"pads", window.pads},
                       {"groups", c.groups}};
      TestInputs inputs{bytes(x_type, x, 1), bytes(w_type, w, 2), std::nullopt, std::nullopt};
      if (number % 3) inputs[2] = bytes(x_type, {}, 3);
      if (number % 4) inputs[3] = bytes(w_type, number % 4 == 3 ? Shape{c.out} : Shape{}, 4);
      const std::vector<size_t> constant =
          number % 2 ? std::vector<size_t>{1, 3} : std::vector<size_t>{};
      expect_exact({"conv_integer", "panels", inputs, attrs, 1, constant});
      const DType to = number % 3 == 0 ? DType::kF32 : number % 3 == 1 ? DType::kU8 : DType::kI8;
      inputs.push_back(TestTensor(DType::kF32, {c.out}).fill(5, 0.0002, 0.002));
      inputs.push_back(TestTensor(DType::kF32, {c.out}).fill(6, -50, 50));
      if (to != DType::kF32) inputs.push_back(bytes(to, {}, 7));
      attrs.push_back({"dtype", to});
      attrs.push_back({"activation", number % 2 ? "relu" : "none"});
      expect_exact({"quantized_conv", "panels", inputs, attrs, 1, constant});
    }
}

// Every kind of channels in each window: products of rows, with and without words that are filled
// up, and taps by channel, whose last block begins earlier.
TEST(IntegerKernels, ConvolutionsWithTheChannelsLast) {
  size_t number = 0;
  for (const ConvWindow& window : kWindows)
    for (const ConvChannels& c :
         {ConvChannels{3, 5, 1}, ConvChannels{8, 70, 1}, ConvChannels{40, 16, 1},
          ConvChannels{6, 4, 2}, ConvChannels{5, 10, 5}, ConvChannels{16, 16, 16},
          ConvChannels{45, 45, 45}, ConvChannels{64, 64, 64}, ConvChannels{90, 90, 90}}) {
      const auto& [x_type, w_type] = kTypes[number++ % std::size(kTypes)];
      SCOPED_TRACE(fmt::format("{}: {} x {}, image {}, {} -> {}, {} groups", number, name(x_type),
                               name(w_type), to_string(window.image), c.in, c.out, c.groups));
      Shape x{2}, w{c.out, c.in / c.groups};
      for (const int64_t extent : window.image) x.push_back(extent);
      for (const int64_t extent : window.kernel) w.push_back(extent);
      x.push_back(c.in);
      const DType to = number % 3 == 0 ? DType::kF32 : number % 3 == 1 ? DType::kU8 : DType::kI8;
      const NamedAttrs attrs{{"strides", window.strides},
                             {"dilations", window.dilations},
                             {"pads", window.pads},
                             {"groups", c.groups},
                             {"dtype", to},
                             {"activation", number % 2   ? "relu"
                                            : number % 4 ? "clamp"
                                                         : "none"},
                             {"alpha", -20.0},
                             {"beta", 90.0},
                             {"layout", "channels_last"}};
      TestInputs inputs{bytes(x_type, x, 1), bytes(w_type, w, 2), std::nullopt, std::nullopt};
      if (number % 3) inputs[2] = bytes(x_type, {}, 3);
      if (number % 4) inputs[3] = bytes(w_type, number % 4 == 3 ? Shape{c.out} : Shape{}, 4);
      inputs.push_back(
          TestTensor(DType::kF32, number % 5 ? Shape{c.out} : Shape{}).fill(5, 0.0002, 0.002));
      inputs.push_back(number % 7 ? std::optional(TestTensor(DType::kF32, {c.out}).fill(6, -50, 50))
                                  : std::nullopt);
      if (to != DType::kF32) inputs.push_back(bytes(to, {}, 7));
      const bool by_channel = c.groups == c.in && c.in == c.out && c.in >= 16;
      expect_exact({"quantized_conv",
                    by_channel && element_count(window.kernel) <= 60 ? "depthwise" : "rows", inputs,
                    attrs, 1, number % 2 ? std::vector<size_t>{1, 3} : std::vector<size_t>{}});
    }
}

// Scales and biases that are no numbers, or too large for sums to fit 32 bits after them.
TEST(IntegerKernels, OddScales) {
  for (const double odd : {testing::kNan, testing::kInf, 1e30, -1e7, 0.0})
    for (const DType to : {DType::kU8, DType::kI8})
      for (const size_t input : {4u, 5u}) {
        SCOPED_TRACE(fmt::format("{} in input {} to {}", odd, input, name(to)));
        TestInputs inputs{bytes(DType::kU8, {1, 5, 6, 32}, 1),
                          bytes(DType::kI8, {70, 32, 1, 1}, 2),
                          bytes(DType::kU8, {}, 3),
                          std::nullopt,
                          TestTensor(DType::kF32, {70}).fill(5, 0.0002, 0.002),
                          TestTensor(DType::kF32, {70}).fill(6, -50, 50),
                          bytes(to, {}, 7)};
        inputs[input]->put({33}, odd);
        NamedAttrs attrs{{"layout", "channels_last"}, {"dtype", to}, {"activation", "relu"}};
        expect_exact({"quantized_conv", "rows", inputs, attrs, 1, {1}});
        inputs[0] = bytes(DType::kU8, {1, 5, 6, 70}, 1);
        inputs[1] = bytes(DType::kI8, {70, 1, 3, 3}, 2);
        attrs.push_back({"groups", 70});
        expect_exact({"quantized_conv", "depthwise", inputs, attrs, 1, {1}});
        inputs[0] = bytes(DType::kU8, {9, 32}, 1);
        inputs[1] = bytes(DType::kI8, {32, 70}, 2);
        expect_exact({"quantized_matmul",
                      "panels",
                      inputs,
                      {{"dtype", to}, {"activation", "relu"}},
                      1,
                      {1}});
      }
}

// The usual weights: i8 around zero, known.
TEST(IntegerKernels, ConvolutionsByChannelWithVnni) {
  TestTensor w = TestTensor(DType::kI8, {80, 1, 3, 3}).fill(2, -127, 127);
  for (const DType x_type : {DType::kU8, DType::kI8})
    expect_exact(
        {"quantized_conv",
         "depthwise",
         {bytes(x_type, {1, 12, 13, 80}, 1), w, bytes(x_type, {}, 3), std::nullopt,
          TestTensor(DType::kF32, {80}).fill(5, 0.0002, 0.002)},
         {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"groups", 80}, {"layout", "channels_last"}},
         1,
         {1}});
}

}  // namespace
}  // namespace anymps
