// SPDX-License-Identifier: Apache-2.0
// Shapes and symbolic dimensions.
#include "base/shape.h"

#include <gtest/gtest.h>

#include "base/dim.h"
#include "base/env.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;

TEST(Shape, CountsAndRefusesOverflow) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3}), 6);
  EXPECT_EQ(element_count({INT64_MAX, 0, INT64_MAX}), 0);
  EXPECT_NE(error_of([] { element_count({INT64_MAX, 2}); }).find("too many"), std::string::npos);
  EXPECT_NE(error_of([] { element_count({2, -1}); }).find("negative"), std::string::npos);
  EXPECT_NE(error_of([] { byte_count(DType::kF64, {INT64_MAX / 4}); }).find("too large"),
            std::string::npos);
}

TEST(Shape, ContiguityIgnoresExtentsOfOne) {
  EXPECT_TRUE(is_contiguous({2, 1, 3}, {3, 77, 1}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));
  EXPECT_FALSE(is_contiguous({2}, {0}));
  EXPECT_TRUE(is_contiguous({0, 5}, {9, 9}));
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast(Shape{2, 1, 4}, Shape{3, 1}, "add"), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast(Shape{}, Shape{0}, "add"), (Shape{0}));
  EXPECT_EQ(error_of([] { broadcast(Shape{2}, Shape{3}, "add"); }),
            "[add] shapes [2] and [3] do not broadcast");
}

TEST(Shape, SpansWhatStridesReach) {
  TensorDesc desc(DType::kF32, {2, 3});
  desc.strides = {-6, 2};
  const Span span = span_of(desc);
  EXPECT_EQ(span.low, -6);
  EXPECT_EQ(span.high, 4);
  desc.strides = {INT64_MAX, 2};
  desc.shape = {3, 3};
  EXPECT_NE(error_of([&] { span_of(desc); }).find("reaches too far"), std::string::npos);
}

TEST(Dim, ComputesWithNumbersAndSymbols) {
  const Dim n = Dim::symbol("N");
  EXPECT_EQ(Dim(7) * Dim(3), Dim(21));
  EXPECT_EQ((n * 1).str(), "N");
  EXPECT_EQ(n * 0, Dim(0));
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(n * 4, Dim(4) * n);
  EXPECT_EQ(floor_div(n * Dim::symbol("S"), n).str(), "S");
  EXPECT_EQ(floor_div(Dim(-7), Dim(2)), Dim(-4));
  EXPECT_EQ(ceil_div(Dim(7), Dim(2)), Dim(4));
  EXPECT_FALSE(n == Dim(1));
  EXPECT_NE(error_of([&] { n.value(); }).find("'N'"), std::string::npos);
  EXPECT_NE(error_of([] { Dim(INT64_MAX) + Dim(1); }).find("overflows"), std::string::npos);
  EXPECT_NE(error_of([] { floor_div(Dim(1), Dim(0)); }).find("zero"), std::string::npos);
}

TEST(Dim, DifferentExpressionsAreNotEqual) {
  const Dim h = Dim::symbol("H"), w = Dim::symbol("W");
  EXPECT_FALSE(floor_div((h + 1) + w, 2) == (h + 1) + floor_div(w, 2));
  EXPECT_FALSE((h - w) - 1 == h - (w - 1));
  EXPECT_FALSE((h + 1) * w == h + Dim(1) * w);
  EXPECT_EQ(floor_div((h + 1) + w, 2).str(), "((H+1)+W)//2");
}

TEST(Dim, ExtremesThatAreOneOfTheirOperands) {
  const Dim n = Dim::symbol("N"), m = Dim::symbol("M"), few = min(n, Dim(512));
  EXPECT_EQ(max(n, few), n);
  EXPECT_EQ(max(few, n), n);
  EXPECT_EQ(max(Dim(512), few), Dim(512));
  EXPECT_EQ(min(n, max(m, n)), n);
  EXPECT_EQ(min(max(m + n, m * n), m * n), m * n);
  EXPECT_EQ(broadcast({n, 8}, {few, 8}, "test"), (Dims{n, 8}));
  // What only looks like it.
  EXPECT_EQ(max(m, few).str(), "max(M,min(N,512))");
  EXPECT_FALSE(max(n, few + min(m, n)) == n);
  EXPECT_FALSE(max(n, min(n + m, Dim(4))) == n);
}

TEST(Dim, LongExpressionsStayBounded) {
  Dim grown = Dim::symbol("N");
  for (int i = 0; i < 1000; ++i) grown = grown + Dim::symbol("a" + std::to_string(i));
  EXPECT_LT(grown.str().size(), 200u);
  EXPECT_EQ(grown, grown);
}

TEST(Dim, ASymbolMayHaveALimit) {
  const Dim bounded = Dim::symbol("N", 128);
  EXPECT_EQ(bounded.limit(), 128);
  EXPECT_EQ(bounded.str(), "N<=128");
  EXPECT_EQ(Dim::parse("N<=128"), bounded);
  EXPECT_EQ(Dim::parse("N<=128").limit(), 128);
  EXPECT_NE(Dim::symbol("N"), bounded);
  EXPECT_EQ(Dim::symbol("N").limit(), Dim::kNoLimit);
  EXPECT_EQ((bounded + 1).str(), "(N<=128)+1");
  for (const char* text : {"N", "(N<=128)+1", "N<=", "N<=x", "N<=1x", "N<=-1"}) {
    EXPECT_EQ(Dim::parse(text).limit(), Dim::kNoLimit) << text;
    EXPECT_EQ(Dim::parse(text).str(), text);
  }
}

TEST(Dim, BroadcastsSymbols) {
  const Dim n = Dim::symbol("N");
  EXPECT_EQ(broadcast(Dims{n, 3}, Dims{1}, "add"), (Dims{n, 3}));
  EXPECT_EQ(broadcast(Dims{n}, Dims{5}, "add"), (Dims{5}));
  EXPECT_NE(error_of([] { broadcast(Dims{4}, Dims{5}, "add"); }).find("[add]"), std::string::npos);
}

TEST(Env, ParsesSizes) {
  EXPECT_EQ(parse_bytes("X", "1G"), int64_t{1} << 30);
  EXPECT_EQ(parse_bytes("X", "512kb"), 512 << 10);
  EXPECT_EQ(parse_bytes("X", "42"), 42);
  for (const char* bad : {"", "G", "-1", "1T", "99999999999G", "1.5M", "1 M"})
    EXPECT_NE(error_of([&] { parse_bytes("X", bad); }).find("[env] X="), std::string::npos) << bad;
}

TEST(Env, RefusesWordsThatMeanNothing) {
  setenv("ANYMPS_CHECK", "1", 1);
  EXPECT_EQ(error_of([] { env_string("ANYMPS_CHECK"); }),
            "[env] ANYMPS_CHECK='1': it takes reference");
  setenv("ANYMPS_CHECK", "reference", 1);
  EXPECT_TRUE(env_contains("ANYMPS_CHECK", "reference"));
  unsetenv("ANYMPS_CHECK");
  EXPECT_FALSE(env_contains("ANYMPS_CHECK", "reference"));
  setenv("ANYMPS_VERBOSE", "cache,dispatch", 1);
  EXPECT_EQ(env_words("ANYMPS_VERBOSE"), (std::vector<std::string>{"cache", "dispatch"}));
  unsetenv("ANYMPS_VERBOSE");
  setenv("ANYMPS_CHECK_RTOL", "1e-3", 1);
  EXPECT_EQ(env_double("ANYMPS_CHECK_RTOL"), 1e-3);
  setenv("ANYMPS_CHECK_RTOL", "tiny", 1);
  EXPECT_EQ(error_of([] { env_double("ANYMPS_CHECK_RTOL"); }),
            "[env] ANYMPS_CHECK_RTOL='tiny' is not a number");
  unsetenv("ANYMPS_CHECK_RTOL");
}

TEST(Env, OnlyDeclaredVariablesAreRead) {
  EXPECT_NE(error_of([] { env_string("ANYMPS_TYPO"); }).find("not declared"), std::string::npos);
}

}  // namespace
}  // namespace anymps
