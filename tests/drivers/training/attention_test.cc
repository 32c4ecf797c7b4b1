// SPDX-License-Identifier: Apache-2.0
// Attention with the logarithms of its sums, and its gradients; numbers from PyTorch.
#include "drivers/training/wave.h"

namespace anymps::testing {
namespace {

const TestTensor kQ = wave({1, 1, 2, 3}, 0.1), kK = wave({1, 1, 3, 3}, 0.7),
                 kV = wave({1, 1, 3, 2}, 1.3), kDy = wave({1, 1, 2, 2}, 2);

struct AttentionCase {
  std::optional<TestTensor> mask;
  bool causal;
  Row y, lse, dq, dk, dv;
};

TEST(TrainingAttention, LogSumExpAndGradients) {
  for (const AttentionCase& c :
       {AttentionCase{std::nullopt,
                      false,
                      {0.831789072832103, 0.699846615757173, 0.87836085738175, 0.763970642773094},
                      {1.51151836137174, 2.18146008489728},
                      {0.0430782102674432, 0.0978411168888556, 0.13936168733279,
                       0.00537461385007885, 0.0124777890443556, 0.0178921540274334},
                      {0.0197046421455013, 0.0517122609113297, 0.0767208677559921,
                       0.00128487745196649, 0.00390488488319622, 0.00599638446412843,
                       -0.0209895195974678, -0.0556171457945259, -0.0827172522201205},
                      {0.598349688443054, 0.331008125447764, 0.510724121246635, 0.275083134294364,
                       0.191108396034444, 0.122773876954263}},
        AttentionCase{wave({2, 3}, 0.2),
                      false,
                      {0.785668145501954, 0.617312496053797, 0.882032287600811, 0.767961019116221},
                      {1.96988858213937, 3.15318881582099},
                      {0.0620456861368683, 0.122556131752792, 0.166479179872779,
                       0.00485598753280196, 0.0115667737211062, 0.0167120513484473},
                      {0.0192900285815655, 0.0514803181093148, 0.076702988086058,
                       0.00339241718335343, 0.014772889017984, 0.0241539196267856,
                       -0.0226824457649189, -0.0662532071272988, -0.100856907712844},
                      {0.503082967231559, 0.258661294483787, 0.543410282746708, 0.297517782562354,
                       0.253688955745867, 0.172686059650251}},
        AttentionCase{
            std::nullopt,
            true,
            {0.963558185417193, 0.99508334981018, 0.929394927578262, 0.839109509608706},
            {0.719921501048085, 2.08862339885674},
            {0, 0, 0, -0.00187780680602549, 0.000327568794943787, 0.00248860949621211},
            {0.00536772485282999, 0.00573685946154953, 0.00532953705497267, -0.00536772485283,
             -0.00573685946154953, -0.00532953705497268, 0, 0, 0},
            {1.11375215858251, 0.713799724847446, 0.186430047141626, 0.0150654118489461, 0, 0}}}) {
    const NamedAttrs attrs = {{"scale", 0.6}, {"causal", c.causal}};
    const auto y = run_reference_all("sdpa", {kQ, kK, kV, c.mask}, attrs);
    expect_all(y, {f64({1, 1, 2, 2}, c.y), f64({1, 1, 2}, c.lse)});
    for (const bool given : {true, false}) {
      const auto back = run_reference_all(
          "sdpa_gradient",
          {kDy, kQ, kK, kV, y[0], given ? std::optional(y[1]) : std::nullopt, c.mask}, attrs);
      expect_all(back, {f64({1, 1, 2, 3}, c.dq), f64({1, 1, 3, 3}, c.dk), f64({1, 1, 3, 2}, c.dv)});
    }
  }
}

// A query that keeps no key gives 0 and takes no part.
TEST(TrainingAttention, QueryWithoutKeys) {
  const TestTensor keep = TestTensor(DType::kBool, {2, 3}, {0, 0, 0, 1, 1, 1});
  const auto y = run_reference_all("sdpa", {kQ, kK, kV, keep});
  EXPECT_EQ(y[1].values()[0], -kInf);
  const auto back = run_reference_all("sdpa_gradient", {kDy, kQ, kK, kV, y[0], y[1], keep});
  const Row dq = back[0].values();
  EXPECT_EQ(Row(dq.begin(), dq.begin() + 3), Row({0, 0, 0}));
  EXPECT_NE(dq[3], 0);
  for (const double v : back[1].values()) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace anymps::testing
