// SPDX-License-Identifier: Apache-2.0
// Expected numbers are those of ONNX Runtime's LSTM, GRU and RNN.
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::run_reference_all;
using testing::same;
using testing::TestInputs;
using testing::TestTensor;

constexpr int64_t kSteps = 3, kBatch = 2, kHidden = 2;

TestTensor pattern(Shape shape, double step) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(static_cast<double>(i * 7 % 11 - 5) * step);
  return TestTensor(DType::kF32, std::move(shape), values);
}

TestInputs inputs(int64_t directions, int64_t gates, bool lstm) {
  TestInputs in{pattern({kSteps, kBatch, 2}, 0.3),
                pattern({directions, gates * kHidden, 2}, 0.1),
                pattern({directions, gates * kHidden, kHidden}, 0.15),
                pattern({directions, 2 * gates * kHidden}, 0.05),
                TestTensor(DType::kI32, {kBatch}, {3, 2}),
                pattern({directions, kBatch, kHidden}, 0.2)};
  if (lstm)
    in.insert(in.end(), {pattern({directions, kBatch, kHidden}, 0.25),
                         pattern({directions, 3 * kHidden}, 0.12)});
  return in;
}

struct RecurrentCase {
  const char *op, *direction;
  int64_t gates;
  bool linear_before_reset;
  std::vector<std::vector<double>> expected;  // y, y_h, y_c
};

class ReferenceRecurrent : public ::testing::TestWithParam<RecurrentCase> {};

TEST_P(ReferenceRecurrent, AgreesWithOnnxRuntime) {
  const RecurrentCase& c = GetParam();
  const int64_t directions = std::string(c.direction) == "bidirectional" ? 2 : 1;
  const bool lstm = std::string(c.op) == "lstm";
  NamedAttrs attrs{{"hidden_size", kHidden}, {"direction", c.direction}};
  if (c.linear_before_reset) attrs.emplace_back("linear_before_reset", true);
  TestInputs in = inputs(directions, c.gates, lstm);
  for (auto& input : in) input = input->scrambled();
  const auto out = run_reference_all(c.op, in, attrs);
  const Shape state{directions, kBatch, kHidden};
  EXPECT_TRUE(same(
      out[0], TestTensor(DType::kF32, {kSteps, directions, kBatch, kHidden}, c.expected[0]), 2e-6));
  for (size_t i = 1; i < c.expected.size(); ++i)
    EXPECT_TRUE(same(out[i], TestTensor(DType::kF32, state, c.expected[i]), 2e-6)) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Ops, ReferenceRecurrent,
    ::testing::Values(
        RecurrentCase{"lstm",
                      "forward",
                      4,
                      false,
                      {{-0.3344752, -0.08970548, -0.1586218, -0.03089205, -0.1550211, -0.1621882,
                        -0.03599833, 0.1276814, -0.07089818, -0.1430888, 0, 0},
                       {-0.07089818, -0.1430888, -0.03599833, 0.1276814},
                       {-0.1837037, -0.5418194, -0.07294071, 0.2073335}}},
        RecurrentCase{"lstm",
                      "reverse",
                      4,
                      false,
                      {{-0.0717274, -0.1413808, -0.05430383, 0.0160653, -0.1514262, -0.1592258,
                        -0.06182365, 0.3358463, -0.3209499, -0.09757624, 0, 0},
                       {-0.0717274, -0.1413808, -0.05430383, 0.0160653},
                       {-0.1793563, -0.6188854, -0.1743411, 0.03681371}}},
        RecurrentCase{"lstm",
                      "bidirectional",
                      4,
                      false,
                      {{-0.3344752, -0.08970548, -0.1586218,  -0.03089205, -0.2502783,  0.2492351,
                        0.06945483, 0.06337794,  -0.1550211,  -0.1621882,  -0.03599833, 0.1276814,
                        -0.1182088, -0.04453536, 0.338128,    -0.05580889, -0.07089818, -0.1430888,
                        0,          0,           -0.09379981, -0.05162815, 0,           0},
                       {-0.07089818, -0.1430888, -0.03599833, 0.1276814, -0.2502783, 0.2492351,
                        0.06945483, 0.06337794},
                       {-0.1837037, -0.5418194, -0.07294071, 0.2073335, -0.6290158, 0.3870215,
                        0.1549982, 0.1258533}}},
        RecurrentCase{"gru",
                      "forward",
                      3,
                      false,
                      {{-0.7254601, 0.199092, -0.1251794, 0.7405393, -0.46808, 0.09291403,
                        -0.1794755, 0.1749264, -0.1799974, -0.1007552, 0, 0},
                       {-0.1799974, -0.1007552, -0.1794755, 0.1749264}}},
        RecurrentCase{"gru",
                      "reverse",
                      3,
                      true,
                      {{-0.1760085, 0.005908944, -0.02245826, 0.1964538, -0.4470401, 0.1599745,
                        -0.3041175, 0.444194, -0.7045475, 0.211103, 0, 0},
                       {-0.1760085, 0.005908944, -0.02245826, 0.1964538}}},
        RecurrentCase{"gru",
                      "bidirectional",
                      3,
                      true,
                      {{-0.7235357, 0.228603,  -0.134532,  0.7451609,  -0.5192139, 0.6615245,
                        0.06837004, 0.2068416, -0.4571848, 0.1668554,  -0.2228273, 0.1965501,
                        -0.1905597, 0.1479458, 0.6028769,  -0.1652415, -0.170257,  -0.01648008,
                        0,          0,         -0.199964,  0.2821342,  0,          0},
                       {-0.170257, -0.01648008, -0.2228273, 0.1965501, -0.5192139, 0.6615245,
                        0.06837004, 0.2068416}}},
        RecurrentCase{"rnn",
                      "forward",
                      1,
                      false,
                      {{0.8831708, 0.9137855, 0.6910696, 0.969864, -0.7887982, 0.2546582,
                        -0.8266119, 0.5581052, 0.7997781, 0.899125, 0, 0},
                       {0.7997781, 0.899125, -0.8266119, 0.5581052}}},
        RecurrentCase{"rnn",
                      "bidirectional",
                      1,
                      false,
                      {{0.8831708,  0.9137855,  0.6910696,  0.969864,   -0.01093477, -0.342186,
                        -0.4567392, -0.1169328, -0.7887982, 0.2546582,  -0.8266119,  0.5581052,
                        0.6557226,  0.06509697, 0.4542164,  0.6695904,  0.7997781,   0.899125,
                        0,          0,          0.1586485,  -0.4699452, 0,           0},
                       {0.7997781, 0.899125, -0.8266119, 0.5581052, -0.01093477, -0.342186,
                        -0.4567392, -0.1169328}}}),
    [](const auto& info) { return std::string(info.param.op) + "_" + info.param.direction; });

TestTensor swap_first_two(const TestTensor& x) {
  Shape shape = x.shape();
  std::swap(shape[0], shape[1]);
  TestTensor y(x.dtype(), shape);
  for_each_index(x.shape(), [&](const Shape& at) {
    Shape to = at;
    std::swap(to[0], to[1]);
    y.put(to, x.get(at));
  });
  return y;
}

TEST(ReferenceRecurrentLayout, BatchFirstGivesTheSameNumbers) {
  const NamedAttrs attrs{{"hidden_size", kHidden}, {"direction", "bidirectional"}};
  TestInputs in = inputs(2, 4, true);
  const auto plain = run_reference_all("lstm", in, attrs);
  for (const size_t i : {0, 5, 6}) in[i] = swap_first_two(*in[i]);
  NamedAttrs first = attrs;
  first.emplace_back("layout", 1);
  const auto batch_first = run_reference_all("lstm", in, first);
  ASSERT_EQ(batch_first[0].shape(), (Shape{kBatch, kSteps, 2, kHidden}));
  for_each_index(plain[0].shape(), [&](const Shape& at) {
    EXPECT_EQ(plain[0].get(at), batch_first[0].get({at[2], at[0], at[1], at[3]}));
  });
  EXPECT_TRUE(same(swap_first_two(batch_first[1]), plain[1]));
  EXPECT_TRUE(same(swap_first_two(batch_first[2]), plain[2]));
}

TEST(ReferenceRecurrentLayout, ClipBoundsWhatActivationsSee) {
  const TestTensor x(DType::kF64, {1, 1, 1}, {5}), w(DType::kF64, {1, 1, 1}, {1}),
      r(DType::kF64, {1, 1, 1}, {0});
  const auto out = run_reference_all("rnn", {x, w, r}, {{"hidden_size", 1}, {"clip", 0.5}});
  EXPECT_NEAR(out[0].values()[0], std::tanh(0.5), 1e-12);
}

TEST(ReferenceRecurrentLayout, LengthZeroKeepsTheInitialState) {
  TestInputs in = inputs(1, 3, false);
  in[4] = TestTensor(DType::kI32, {kBatch}, {0, 3});
  const auto out = run_reference_all("gru", in, {{"hidden_size", kHidden}});
  EXPECT_EQ(out[1].get({0, 0, 1}), in[5]->get({0, 0, 1}));
  EXPECT_EQ(out[0].get({0, 0, 0, 1}).real(), 0);
}

TEST(ReferenceRecurrentLayout, RefusesLengthsBeyondTheSteps) {
  TestInputs in = inputs(1, 1, false);
  in[4] = TestTensor(DType::kI32, {kBatch}, {4, 1});
  EXPECT_EQ(error_of([&] {
              run_reference_all("rnn", in, {{"hidden_size", kHidden}});
            }),
            "[rnn] seq_lens has the entry 4, must be 0 to 3");
}

TestTensor wave(const Shape& shape, double k) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(std::sin(static_cast<double>(i) * k + 0.5));
  return TestTensor(DType::kF32, shape, values);
}

// Numbers of ONNX Runtime, for weights that are waves.
TEST(ReferenceRecurrentOptions, ActivationsClipAndInputForget) {
  using Floats = std::vector<double>;
  struct RecurrentCase {
    const char* op;
    int64_t gates, directions;
    NamedAttrs attrs;
    Floats expected;
  };
  const std::vector<RecurrentCase> cases = {
      {"lstm",
       4,
       1,
       {{"activations", "hardsigmoid,softsign,elu"},
        {"activation_alpha", Floats{0.3, 0, 0.7}},
        {"activation_beta", Floats{0.4, 0, 0}}},
       {0.058768213, 0, 0.15777929, 0.097312696}},
      {"lstm", 4, 1, {{"input_forget", true}}, {0.083977178, 0.011465787, 0.23374137, 0.21409503}},
      {"gru",
       3,
       1,
       {{"activations", "leakyrelu,scaledtanh"},
        {"activation_alpha", Floats{0.2, 1.5}},
        {"activation_beta", Floats{0, 0.5}}},
       {0.095626444, 0.42542928, -0.74210286, 2.2014759}},
      {"gru", 3, 1, {{"clip", 0.3}}, {-0.12397026, -0.12397026, -0.22009882, -0.19518405}},
      {"rnn",
       1,
       2,
       {{"direction", "bidirectional"},
        {"activations", "thresholdedrelu,affine"},
        {"activation_alpha", Floats{0.1, 2}},
        {"activation_beta", Floats{0, 0.25}}},
       {2.3866215, 1.8960376, -7.5327511, -5.7932024, 3.3640938, 5.0115156, -1.3430312,
        -0.58867186}}};
  for (const RecurrentCase& c : cases) {
    NamedAttrs attrs = c.attrs;
    attrs.emplace_back("hidden_size", 2);
    EXPECT_TRUE(same(
        testing::run_reference(
            c.op,
            {wave({2, 1, 2}, 1.1), wave({c.directions, 2 * c.gates, 2}, 0.7),
             wave({c.directions, 2 * c.gates, 2}, 0.3), wave({c.directions, 4 * c.gates}, 0.9)},
            attrs),
        TestTensor(DType::kF32, {2, c.directions, 1, 2}, c.expected), 1e-5))
        << c.op << " " << c.attrs[0].name;
  }
}

// Where x and the state are multiples of their steps, rounding them changes nothing.
TEST(ReferenceRecurrentBytes, RoundsWhatIsMultiplied) {
  const auto run = [](double x, double h, bool rounds) {
    NamedAttrs attrs{{"hidden_size", 3}};
    if (rounds) attrs.emplace_back("dynamic_bytes", true);
    return run_reference_all(
        "lstm",
        {TestTensor(DType::kF32, {1, 1, 2}, {x, 255}), pattern({1, 12, 2}, 0.0003),
         pattern({1, 12, 3}, 0.3), std::nullopt, std::nullopt,
         TestTensor(DType::kF32, {1, 1, 3}, {h, 0.508, -0.512})},  // steps of 0.004
        attrs, 3)[0];
  };
  EXPECT_TRUE(same(run(17, 0.1, true), run(17, 0.1, false), 1e-6));
  EXPECT_TRUE(same(run(17.4, 0.1015, true), run(17, 0.1, true), 0));
  EXPECT_FALSE(same(run(17.4, 0.1, true), run(17.4, 0.1, false), 1e-6));
  EXPECT_FALSE(same(run(17, 0.1015, true), run(17, 0.1015, false), 1e-6));
}

TEST(ReferenceRecurrentBytes, RefusesOtherTypesAndAReserve) {
  for (const DType dtype : {DType::kF16, DType::kF64})
    EXPECT_NE(error_of([&] {
                run_reference_all("lstm",
                                  {TestTensor(dtype, {1, 1, 2}), TestTensor(dtype, {1, 8, 2}),
                                   TestTensor(dtype, {1, 8, 2})},
                                  {{"hidden_size", 2}, {"dynamic_bytes", true}}, 3);
              }).find("must be f32"),
              std::string::npos);
}

}  // namespace
}  // namespace anymps
