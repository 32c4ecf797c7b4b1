// SPDX-License-Identifier: Apache-2.0
// The narrow types against numbers of ml_dtypes 0.6: counts and sums over all codes, codes of
// chosen numbers, and ONNX's rules for e8m0.
#include "base/narrow.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace anymps {
namespace {

struct Totals {
  DType dtype;
  int codes, nans, infinities;
  double max, smallest, sum, weighted;  // of |x|, and of code * x
};

const Totals kTotals[] = {
    {DType::kF8E4M3, 256, 2, 0, 448, 0x1p-9, 10815.75, -692208.0},
    {DType::kF8E5M2, 256, 6, 2, 57344, 0x1p-16, 720895.9995117188, -46137343.96875},
    {DType::kF8E4M3FNUZ, 256, 1, 0, 240, 0x1p-10, 5887.875, -376824.0},
    {DType::kF8E5M2FNUZ, 256, 1, 0, 57344, 0x1p-17, 720895.9997558594, -46137343.984375},
    {DType::kF8E8M0, 256, 1, 0, 0x1p127, 0x1p-127, 3.402823669209385e+38, 8.609143883099743e+40},
    {DType::kF4E2M1, 16, 0, 0, 6, 0.5, 36, -144},
};

TEST(Narrow, DecodesEveryCode) {
  for (const Totals& expected : kTotals) {
    SCOPED_TRACE(name(expected.dtype));
    int nans = 0, infinities = 0;
    double max = 0, smallest = INFINITY, sum = 0, weighted = 0;
    for (int code = 0; code < expected.codes; ++code) {
      const double x = decode_narrow(expected.dtype, static_cast<uint8_t>(code));
      EXPECT_EQ(std::isnan(x),
                std::isnan(narrow_values(expected.dtype)[static_cast<size_t>(code)]));
      nans += std::isnan(x);
      infinities += std::isinf(x);
      if (!std::isfinite(x)) continue;
      max = std::max(max, x);
      if (x > 0) smallest = std::min(smallest, x);
      sum += std::abs(x);
      weighted += code * x;
    }
    EXPECT_EQ(nans, expected.nans);
    EXPECT_EQ(infinities, expected.infinities);
    EXPECT_EQ(max, expected.max);
    EXPECT_EQ(smallest, expected.smallest);
    EXPECT_DOUBLE_EQ(sum, expected.sum);
    EXPECT_DOUBLE_EQ(weighted, expected.weighted);
  }
}

TEST(Narrow, EveryNumberSurvivesAndNeighboursRoundToEven) {
  for (const Totals& type : kTotals) {
    SCOPED_TRACE(name(type.dtype));
    for (int code = 0; code < type.codes; ++code) {
      const auto bits = static_cast<uint8_t>(code);
      const float x = decode_narrow(type.dtype, bits);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(decode_narrow(type.dtype, encode_narrow(type.dtype, x))));
        continue;
      }
      EXPECT_EQ(encode_narrow(type.dtype, x, false), bits);
      if (type.dtype == DType::kF8E8M0 || std::signbit(x) || std::isinf(x) || x == type.max)
        continue;
      const double next = decode_narrow(type.dtype, static_cast<uint8_t>(code + 1));
      const double middle = (x + next) / 2;
      EXPECT_EQ(encode_narrow(type.dtype, middle), code % 2 ? code + 1 : code);
      EXPECT_EQ(encode_narrow(type.dtype, std::nextafter(middle, 0)), bits);
      EXPECT_EQ(encode_narrow(type.dtype, std::nextafter(middle, INFINITY)), code + 1);
    }
  }
}

TEST(Narrow, BeyondTheLargest) {
  const double kNumbers[] = {0.0, -0.0,     448,       464, 465, 480, 1e9,   -1e9,   60000, 61440,
                             NAN, INFINITY, -INFINITY, 6,   7,   -7,  1e-10, -1e-10, 240,   248};
  struct Case {
    DType dtype;
    std::vector<int> plain, saturated;
  };
  const Case cases[] = {
      {DType::kF8E4M3,
       {0,    0x80, 0x7e, 0x7e, 0x7f, 0x7f, 0x7f, 0xff, 0x7f, 0x7f,
        0x7f, 0x7f, 0xff, 0x4c, 0x4e, 0xce, 0,    0x80, 0x77, 0x78},
       {0,    0x80, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7e, 0x7e,
        0x7f, 0x7e, 0xfe, 0x4c, 0x4e, 0xce, 0,    0x80, 0x77, 0x78}},
      {DType::kF8E4M3FNUZ,
       {0,    0,    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
        0x80, 0x80, 0x80, 0x54, 0x56, 0xd6, 0,    0,    0x7f, 0x80},
       {0,    0,    0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0xff, 0x7f, 0x7f,
        0x80, 0x7f, 0xff, 0x54, 0x56, 0xd6, 0,    0,    0x7f, 0x7f}},
      {DType::kF8E5M2,
       {0,    0x80, 0x5f, 0x5f, 0x5f, 0x60, 0x7c, 0xfc, 0x7b, 0x7c,
        0x7e, 0x7c, 0xfc, 0x46, 0x47, 0xc7, 0,    0x80, 0x5c, 0x5c},
       {0,    0x80, 0x5f, 0x5f, 0x5f, 0x60, 0x7b, 0xfb, 0x7b, 0x7b,
        0x7e, 0x7b, 0xfb, 0x46, 0x47, 0xc7, 0,    0x80, 0x5c, 0x5c}},
      {DType::kF8E5M2FNUZ,
       {0,    0,    0x63, 0x63, 0x63, 0x64, 0x80, 0x80, 0x7f, 0x80,
        0x80, 0x80, 0x80, 0x4a, 0x4b, 0xcb, 0,    0,    0x60, 0x60},
       {0,    0,    0x63, 0x63, 0x63, 0x64, 0x7f, 0xff, 0x7f, 0x7f,
        0x80, 0x7f, 0xff, 0x4a, 0x4b, 0xcb, 0,    0,    0x60, 0x60}},
      {DType::kF4E2M1,
       {0, 8, 7, 7, 7, 7, 7, 15, 7, 7, 8, 7, 15, 7, 7, 15, 0, 8, 7, 7},
       {0, 8, 7, 7, 7, 7, 7, 15, 7, 7, 8, 7, 15, 7, 7, 15, 0, 8, 7, 7}},
  };
  for (const Case& item : cases) {
    for (size_t i = 0; i < std::size(kNumbers); ++i) {
      SCOPED_TRACE(fmt::format("{} {}", name(item.dtype), kNumbers[i]));
      EXPECT_EQ(encode_narrow(item.dtype, kNumbers[i], false), item.plain[i]);
      EXPECT_EQ(encode_narrow(item.dtype, kNumbers[i], true), item.saturated[i]);
    }
  }
}

// As ONNX rounds, except for numbers up to 2^-127, which is a power of two itself.
TEST(Narrow, PowersOfTwo) {
  const double kNumbers[] = {0,      1,     1.5,      1.4,      3,          -3,
                             0.75,   1e-45, 0x1p-126, 0x1p-127, 0x1.8p-127, 3e38,
                             3.4e38, NAN,   INFINITY, -INFINITY};
  struct Case {
    bool saturate;
    NarrowRounding rounding;
    std::vector<int> codes;
  };
  const Case cases[] = {
      {true,
       NarrowRounding::kUp,
       {0, 127, 128, 128, 129, 129, 127, 0, 1, 0, 1, 254, 254, 255, 255, 255}},
      {true,
       NarrowRounding::kDown,
       {0, 127, 127, 127, 128, 128, 126, 0, 1, 0, 0, 254, 254, 255, 255, 255}},
      {true,
       NarrowRounding::kNearest,
       {0, 127, 128, 127, 129, 129, 127, 0, 1, 0, 1, 254, 254, 255, 255, 255}},
      {false,
       NarrowRounding::kUp,
       {0, 127, 128, 128, 129, 129, 127, 0, 1, 0, 1, 255, 255, 255, 255, 255}},
      {false,
       NarrowRounding::kNearest,
       {0, 127, 128, 127, 129, 129, 127, 0, 1, 0, 1, 255, 255, 255, 255, 255}},
  };
  for (const Case& item : cases)
    for (size_t i = 0; i < std::size(kNumbers); ++i)
      EXPECT_EQ(encode_narrow(DType::kF8E8M0, kNumbers[i], item.saturate, item.rounding),
                item.codes[i])
          << kNumbers[i] << " " << static_cast<int>(item.rounding);
}

TEST(Narrow, IntegersWrapAndDropTheFraction) {
  const double kNumbers[] = {-300, -9.6, -8.5, -3.7, -0.5, 1.5,      7.9,      8.2,
                             15.9, 16.1, 255,  300,  NAN,  INFINITY, -INFINITY};
  const std::pair<DType, std::vector<int>> cases[] = {
      {DType::kI4, {4, 7, -8, -3, 0, 1, 7, -8, -1, 0, -1, -4, 0, 0, 0}},
      {DType::kU4, {4, 7, 8, 13, 0, 1, 7, 8, 15, 0, 15, 12, 0, 0, 0}},
      {DType::kI2, {0, -1, 0, 1, 0, 1, -1, 0, -1, 0, -1, 0, 0, 0, 0}},
      {DType::kU2, {0, 3, 0, 1, 0, 1, 3, 0, 3, 0, 3, 0, 0, 0, 0}},
  };
  for (const auto& [dtype, expected] : cases)
    for (size_t i = 0; i < std::size(kNumbers); ++i)
      EXPECT_EQ(decode_narrow(dtype, encode_narrow(dtype, kNumbers[i])), expected[i])
          << name(dtype) << " " << kNumbers[i];
  EXPECT_EQ(quantize_narrow(DType::kI4, 7.5), 7);
  EXPECT_EQ(static_cast<int8_t>(quantize_narrow(DType::kI4, -100)), -8);
  EXPECT_EQ(quantize_narrow(DType::kU2, 2.5), 2);
  EXPECT_EQ(quantize_narrow(DType::kU4, NAN), 0);
}

}  // namespace
}  // namespace anymps
