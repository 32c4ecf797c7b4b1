// SPDX-License-Identifier: Apache-2.0
// Philox is checked with the known answers of its authors' library Random123, the distributions by
// their moments.
#include "semantics/random/philox.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::run_reference_all;
using testing::same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;
using Words = std::array<uint32_t, 4>;

TEST(Philox, KnownAnswers) {
  EXPECT_EQ((Philox{}.words(0)), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t all = 0xffffffff;
  EXPECT_EQ((Philox{{all, all, all, all}, {all, all}}.words(0)),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      (Philox{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}}.words(0)),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CountsWithCarry) {
  const Philox last{{0xfffffffe, 0xffffffff, 7, 0}, {}};
  EXPECT_EQ(last.advanced(3).counter, (Words{1, 0, 8, 0}));
}

TEST(Philox, NormalQuantile) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-13);
  EXPECT_NEAR(normal_quantile(0.1), -1.2815515655446004, 1e-14);
}

TestTensor state(int64_t key) { return run_reference("philox_state", {}, {{"key", key}}); }

struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY;
};

Moments moments(NamedAttrs attrs) {
  attrs.emplace_back("shape", Ints{100000});
  Moments m;
  const std::vector<double> values = run_reference("random", {state(42)}, attrs).values();
  for (const double x : values) {
    m.mean += x / 1e5;
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  for (const double x : values) m.deviation += (x - m.mean) * (x - m.mean) / 1e5;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(ReferenceRandom, Moments) {
  const Moments uniform = moments({{"low", -1.0}, {"high", 3.0}});
  EXPECT_NEAR(uniform.mean, 1, 0.02);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_GE(uniform.low, -1);
  EXPECT_LT(uniform.high, 3);
  const Moments whole = moments({{"low", -2.0}, {"high", 3.0}, {"dtype", DType::kI32}});
  EXPECT_EQ(whole.low, -2);
  EXPECT_EQ(whole.high, 2);
  EXPECT_NEAR(whole.mean, 0, 0.02);
  for (const char* sampling : {"inverse_cdf", "box_muller"}) {
    const Moments normal = moments(
        {{"distribution", "normal"}, {"mean", 5.0}, {"deviation", 2.0}, {"sampling", sampling}});
    EXPECT_NEAR(normal.mean, 5, 0.03) << sampling;
    EXPECT_NEAR(normal.deviation, 2, 0.03) << sampling;
    EXPECT_GT(normal.high, 11) << sampling;
  }
  const Moments cut = moments({{"distribution", "truncated_normal"}, {"low", 0.0}, {"high", 1.0}});
  EXPECT_GE(cut.low, 0);
  EXPECT_LE(cut.high, 1);
  EXPECT_NEAR(cut.mean, 0.459862, 0.005);  // (pdf(0) - pdf(1)) / (cdf(1) - cdf(0))
}

TEST(ReferenceRandom, OneStreamInPieces) {
  const auto whole = run_reference("random", {state(7)}, {{"shape", Ints{16}}}).values();
  const auto first = run_reference_all("random", {state(7)}, {{"shape", Ints{8}}});
  const auto second = run_reference("random", {first[1]}, {{"shape", Ints{8}}}).values();
  std::vector<double> joined = first[0].values();
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(joined, whole);
  EXPECT_NE(run_reference("random", {state(8)}, {{"shape", Ints{16}}}).values(), whole);
}

TEST(ReferenceRandom, NewStatesAtEachRun) {
  EXPECT_NE(run_reference("random_state", {}).values(), run_reference("random_state", {}).values());
}

TEST(ReferenceRandom, DropoutKeepsTheMean) {
  TestTensor ones(DType::kF32, {100000});
  for_each_index(ones.shape(), [&](const Shape& at) { ones.put(at, 1); });
  const auto out = run_reference_all("dropout", {ones, state(1)}, {{"rate", 0.2}});
  double sum = 0, kept = 0;
  for_each_index(ones.shape(), [&](const Shape& at) {
    sum += out[0].get(at).real();
    kept += out[1].get(at).real();
    EXPECT_EQ(out[0].get(at).real() != 0, out[1].get(at).real() != 0);
  });
  EXPECT_NEAR(sum / 1e5, 1, 0.01);
  EXPECT_NEAR(kept / 1e5, 0.8, 0.01);
  // A rate that is a tensor wins.
  const TestTensor rate(DType::kF64, {}, {1.0});
  EXPECT_TRUE(same(run_reference("dropout", {ones, state(1), rate}, {{"rate", 0.2}}),
                   TestTensor(DType::kF32, {100000})));
}

TEST(ReferenceRandom, BernoulliAndMultinomial) {
  TestTensor p(DType::kF32, {100000});
  for_each_index(p.shape(), [&](const Shape& at) { p.put(at, 0.3); });
  double sum = 0;
  for (const double x : run_reference("bernoulli", {p, state(3)}).values()) sum += x;
  EXPECT_NEAR(sum / 1e5, 0.3, 0.01);
  const TestTensor logits(DType::kF32, {1, 3}, {std::log(1.0), std::log(2.0), -INFINITY});
  double ones = 0;
  for (const double c :
       run_reference("multinomial", {logits, state(5)}, {{"samples", 60000}}).values()) {
    ASSERT_LT(c, 2);
    ones += c;
  }
  EXPECT_NEAR(ones / 6e4, 2.0 / 3, 0.01);
}

}  // namespace
}  // namespace anymps
