// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with torch's order of gates, and their gradients with and without the reserve.
// Expected numbers are those of torch.nn.LSTM, GRU and RNN on packed sequences, in double.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

constexpr int64_t kSteps = 3, kBatch = 2, kWidth = 2, kHidden = 2;

TestTensor cycle(Shape shape, double step) {
  Row values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(static_cast<double>(i * 7 % 11 - 5) * step);
  return f64(std::move(shape), values);
}

struct TorchCase {
  const char* op;
  bool both;  // directions
  int64_t gates;
  const char* activation;      // of rnn
  std::vector<Row> results;    // y, y_h, y_c
  std::vector<Row> gradients;  // dx, dw, dr, db, dh0, dc0; dx and dh0 of both directions

  bool lstm() const { return gates == 4; }
};

class TorchRecurrent : public ::testing::TestWithParam<TorchCase> {
 protected:
  static void expect_near(const TestTensor& got, const Row& expected, const std::string& what) {
    const Row values = got.values();
    ASSERT_EQ(values.size(), expected.size()) << what;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(values[i], expected[i], 6e-7) << what << " at " << i;
  }
};

TEST_P(TorchRecurrent, ResultsAndGradients) {
  const TorchCase& c = GetParam();
  const int64_t d = c.both ? 2 : 1;
  const Shape state{d, kBatch, kHidden};
  NamedAttrs attrs{{"hidden_size", kHidden}, {"direction", c.both ? "bidirectional" : "forward"}};
  if (c.gates > 1) attrs.emplace_back("gate_order", "torch");
  if (c.gates == 3) attrs.emplace_back("linear_before_reset", true);
  if (c.gates == 1) attrs.emplace_back("activation", c.activation);
  TestInputs layer{
      cycle({kSteps, kBatch, kWidth}, 0.3),         cycle({d, c.gates * kHidden, kWidth}, 0.1),
      cycle({d, c.gates * kHidden, kHidden}, 0.15), cycle({d, 2 * c.gates * kHidden}, 0.05),
      TestTensor(DType::kI64, {kBatch}, {3, 2}),    cycle(state, 0.2)};
  if (c.lstm()) layer.emplace_back(cycle(state, 0.25));
  const auto results = run_reference_all(c.op, layer, attrs);
  for (size_t i = 0; i < c.results.size(); ++i)
    expect_near(results[i], c.results[i], fmt::format("output {}", i));

  TestInputs inputs = layer;
  if (c.lstm()) inputs.emplace_back(std::nullopt);  // peepholes
  inputs.emplace_back(cycle({kSteps, d, kBatch, kHidden}, 0.17));
  inputs.emplace_back(cycle(state, 0.13));
  if (c.lstm()) inputs.emplace_back(cycle(state, 0.23));
  inputs.emplace_back(std::nullopt);
  for (const bool reserve : {false, true}) {
    if (reserve) inputs.back() = results.back();
    const auto gradients =
        run_reference_all((std::string(c.op) + "_gradient").c_str(), inputs, attrs);
    const std::vector<size_t> outputs =
        c.both ? std::vector<size_t>{0, 4} : std::vector<size_t>{0, 1, 2, 3, 4, 5};
    for (size_t i = 0; i < c.gradients.size(); ++i)
      expect_near(gradients[outputs[i]], c.gradients[i],
                  fmt::format("gradient {}, reserve {}", outputs[i], reserve));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, TorchRecurrent,
    ::testing::Values(
        TorchCase{"lstm",
                  false,
                  4,
                  "tanh",
                  {{0.1356597, -0.0589501, 0.1865372, -0.142157, 0.06444262, -0.04394526, 0.1039341,
                    -0.2284772, 0.2067665, -0.1472123, 0, 0},
                   {0.2067665, -0.1472123, 0.1039341, -0.2284772},
                   {0.4248429, -0.3894365, 0.1523373, -0.3477916}},
                  {{0.04015211, -0.0136279, 0.1545535, -0.1390922, 0.05554462, 0.04846873,
                    -0.1092898, -0.3897418, 0.2589633, -0.4104631, 0, 0},
                   {0.5028194, -0.3938239, 0.008094997, -0.2107093, -0.1703984, 0.08831846,
                    -0.3001684, 0.4468644, 0.6403038, -0.4707402, 0.3012688, 0.6316846, 0.3063377,
                    -0.2515743, 0.07383239, -0.1248918},
                   {0.07362578, -0.06717193, 0.007807919, -0.08471359, -0.1317556, 0.07411887,
                    -0.1403715, 0.3366493, 0.003836621, -0.01426896, 0.1367637, 0.01024686,
                    0.0799674, -0.07762611, 0.01755899, -0.02052382},
                   {-0.3748387, -0.2994252, 0.05137561, 0.2057061, -0.6879745, 0.9796477,
                    -0.2260752, -0.1336214, -0.3748387, -0.2994252, 0.05137561, 0.2057061,
                    -0.6879745, 0.9796477, -0.2260752, -0.1336214},
                   {0.06022817, -0.02044184, 0.2318302, -0.2086382},
                   {-0.1304362, -0.0239601, -0.0596127, 0.4198097}}},
        TorchCase{"lstm",
                  true,
                  4,
                  "tanh",
                  {{0.1356597,  -0.0589501, 0.1865372,  -0.142157,   0.1215054, -0.0914989,
                    0.252279,   -0.1090747, 0.06444262, -0.04394526, 0.1039341, -0.2284772,
                    0.04167033, 0.05396111, 0.3563352,  0.03762224,  0.2067665, -0.1472123,
                    0,          0,          0.1053167,  -0.2884487,  0,         0},
                   {0.2067665, -0.1472123, 0.1039341, -0.2284772, 0.1215054, -0.0914989, 0.252279,
                    -0.1090747},
                   {0.4248429, -0.3894365, 0.1523373, -0.3477916, 0.4975039, -0.1248326, 0.7900436,
                    -0.162365}},
                  {{0.01847753, 0.04202445, 0.1728516, 0.05008849, -0.06205854, 0.149073,
                    0.02436671, -0.1803318, 0.2068654, -0.3415653, 0, 0},
                   {0.131646, -0.2292674, 0.2366888, -0.2127116, -0.0462136, 0.1253978, 0.1018862,
                    0.1043267}}},
        TorchCase{"gru",
                  false,
                  3,
                  "tanh",
                  {{0.3702837, -0.2535236, 0.5797222, -0.003068923, 0.001991336, -0.09824334,
                    0.02247203, -0.09059602, 0.4119196, -0.3257788, 0, 0},
                   {0.4119196, -0.3257788, 0.02247203, -0.09059602}},
                  {{0.08549907, -0.1380922, 0.2524803, -0.066262, 0.04128688, 0.08209157,
                    -0.04246852, -0.05326626, 0.2323579, -0.3610419, 0, 0},
                   {-0.009318377, -0.00235773, 0.009545747, -0.02928572, -0.5772413, 0.3985217,
                    -0.4057423, 0.9459128, 1.027882, -0.5782826, -0.3128148, 0.5458254},
                   {0.005721565, -0.00902587, 0.0004084467, -0.01029949, -0.2600437, 0.1322731,
                    -0.2031626, 0.5911197, 0.1310113, -0.02509065, -0.02928811, 0.07633103},
                   {-0.01504013, -0.02799262, 0.6305622, 0.8007999, -0.5190009, 0.3493949,
                    -0.01504013, -0.02799262, 0.6305622, 0.8007999, -0.4359184, 0.2777925},
                   {-0.1110599, -0.1894943, 0.3519665, 0.522731}}},
        TorchCase{"gru",
                  true,
                  3,
                  "tanh",
                  {{0.3702837,   -0.2535236,  0.5797222,   -0.003068923, -0.2305757, 0.456164,
                    0.198727,    0.2070114,   0.001991336, -0.09824334,  0.02247203, -0.09059602,
                    -0.09506859, 0.009272183, 0.4949185,   -0.3192019,   0.4119196,  -0.3257788,
                    0,           0,           -0.05743586, 0.05965436,   0,          0},
                   {0.4119196, -0.3257788, 0.02247203, -0.09059602, -0.2305757, 0.456164, 0.198727,
                    0.2070114}},
                  {{0.2532007, -0.4959886, 0.2291142, -0.03895735, 0.3026847, -0.2090916, 0.2041709,
                    -0.004190285, 0.3114027, -0.4476243, 0, 0},
                   {-0.1293989, -0.3061723, 0.1801165, 0.2197765, 0.6641067, -0.4203654, 0.7957562,
                    0.1703675}}},
        TorchCase{"rnn",
                  false,
                  1,
                  "tanh",
                  {{0.8831709, 0.9137855, 0.6910695, 0.969864, -0.7887982, 0.2546583, -0.8266119,
                    0.5581054, 0.7997781, 0.899125, 0, 0},
                   {0.7997781, 0.899125, -0.8266119, 0.5581054}},
                  {{0.0914016, -0.03558705, 0.1353913, -0.02359994, 0.009931036, -0.2173005,
                    -0.1560171, 0.2503724, 0.2101337, -0.02209836, 0, 0},
                   {1.245268, -1.156386, 0.1605232, 0.7004141},
                   {0.9355506, -0.1989125, -0.2870814, 0.08116267},
                   {-0.6465599, 0.162197, -0.6465599, 0.162197},
                   {0.1371024, -0.05338057, 0.203087, -0.03539991}}},
        TorchCase{
            "rnn",
            true,
            1,
            "relu",
            {{1.39,  1.55,  0.85, 2.09, 0,       0,        0, 0, 0,    0.5855, 0, 1.4225,
              0.574, 0.066, 0.49, 0.81, 0.60565, 1.479125, 0, 0, 0.16, 0,      0, 0},
             {0.60565, 1.479125, 0, 1.4225, 0, 0, 0, 0}},
            {{0.357, 0.273105, 0, 0.294, -0.2754, 0.3315, 0.193, -0.355, 0.4277, 0.1309, 0, 0},
             {0.5355, 0.4096575, 0, 0.441, 0.05355, -0.16065, 0.2295, -0.3825}}}),
    [](const auto& info) {
      return std::string(info.param.op) + (info.param.both ? "_both" : "_forward");
    });

}  // namespace
}  // namespace anymps::testing
