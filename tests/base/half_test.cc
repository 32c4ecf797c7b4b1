// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace anymps {
namespace {

Half half(uint16_t bits) {
  Half value;
  value.bits = bits;
  return value;
}

TEST(Half, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = half(static_cast<uint16_t>(bits));
    const Half back(value);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(static_cast<float>(back)));
    else
      EXPECT_EQ(back.bits, bits);
  }
}

TEST(Half, RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half(static_cast<uint16_t>(bits)),
                high = half(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(Half(middle).bits, bits % 2 ? bits + 1 : bits);
    EXPECT_EQ(Half(std::nextafterf(middle, 0)).bits, bits);
    EXPECT_EQ(Half(std::nextafterf(middle, INFINITY)).bits, bits + 1);
    EXPECT_EQ(Half(-middle).bits, (bits % 2 ? bits + 1 : bits) | 0x8000);
  }
}

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(INFINITY).bits, 0x7c00);
}

TEST(BFloat, RoundsToNearestEven) {
  EXPECT_EQ(BFloat(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat(1.00390625f).bits, 0x3f80);  // halfway, even below
  EXPECT_EQ(BFloat(1.01171875f).bits, 0x3f82);  // halfway, even above
  EXPECT_EQ(BFloat(1.004f).bits, 0x3f81);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat(NAN))));
  EXPECT_EQ(BFloat(std::numeric_limits<float>::max()).bits, 0x7f80);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat value;
    value.bits = static_cast<uint16_t>(bits);
    if (std::isnan(static_cast<float>(value))) continue;
    EXPECT_EQ(BFloat(static_cast<float>(value)).bits, bits);
  }
}

}  // namespace
}  // namespace anymps
