// SPDX-License-Identifier: Apache-2.0
// Three steps of each optimizer; numbers from PyTorch.
#include "drivers/training/wave.h"

namespace anymps::testing {
namespace {

const std::optional<TestTensor> kNone;

// Takes three steps. `states` are the inputs between the learning rate and the master, in order;
// those that are not given stay absent until an output makes them.
std::vector<TestTensor> three_steps(const char* op, double rate, TestInputs states,
                                    const NamedAttrs& attrs) {
  const Op& record = get_op(op);
  const bool counts = record.inputs[3].name == "step";
  TestTensor values = wave({3}, 0.1);
  for (int step = 0; step < 3; ++step) {
    TestInputs inputs = {values, wave({3}, 1.0 + step), f64({}, {rate})};
    if (counts) inputs.push_back(f64({}, {step + 1.0}));
    inputs.insert(inputs.end(), states.begin(), states.end());
    const auto results = run_reference_all(op, inputs, attrs);
    values = results[0];
    for (size_t i = 0; i < states.size(); ++i)
      if (results[i + 1].count() > 0) states[i] = results[i + 1];
  }
  std::vector<TestTensor> all = {values};
  for (const auto& state : states)
    if (state) all.push_back(*state);
  return all;
}

const TestTensor kZero = f64({3}, {0, 0, 0});

TEST(TrainingSteps, Sgd) {
  expect_all(three_steps("sgd_step", 0.1, {kNone},
                         {{"momentum", 0.9}, {"dampening", 0.2}, {"weight_decay", 0.1}}),
             {f64({3}, {-0.279558339079119, 0.0802642052652188, 0.429223365963318}),
              f64({3}, {1.44754135678106, 1.19249557034032, 0.776051102703629})});
  expect_all(three_steps("sgd_step", 0.1, {kNone},
                         {{"momentum", 0.9}, {"nesterov", true}, {"maximize", true}}),
             {f64({3}, {0.662447692523398, 0.935817895625457, 1.08252953667482}),
              f64({3}, {-1.64107918989738, -1.19484897239294, -0.586901551765035})});
}

TEST(TrainingSteps, Adam) {
  expect_all(
      three_steps("adam_step", 0.1, {kZero, kZero, kZero},
                  {{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-3}, {"weight_decay", 0.1}}),
      {f64({3}, {-0.178966033699103, 0.197773800649422, 0.524786112632758}),
       f64({3}, {0.280693709216792, 0.208269462202863, 0.107001298248965}),
       f64({3}, {0.0728474933310239, 0.0749361929094723, 0.0734621235238193}),
       f64({3}, {0.0757769297946281, 0.0767572299785705, 0.0734621235238193})});
  expect_all(three_steps("adam_step", 0.1, {kZero, kZero},
                         {{"weight_decay", 0.1}, {"decoupled", true}, {"maximize", true}}),
             {f64({3}, {0.378139172657222, 0.696631104401196, 0.940611532448039}),
              f64({3}, {-0.164107918989738, -0.119484897239294, -0.0586901551765035}),
              f64({3}, {0.00155256782480663, 0.00149527934718745, 0.00143967573504351})});
}

TEST(TrainingSteps, Others) {
  expect_all(three_steps("adagrad_step", 0.1, {kZero},
                         {{"decay", 0.2}, {"weight_decay", 0.1}, {"epsilon", 1e-3}}),
             {f64({3}, {-0.0685206261491728, 0.315541280752626, 0.640358864372313}),
              f64({3}, {1.57002234357884, 1.62609995528897, 1.5834844145839})});
  expect_all(
      three_steps("rmsprop_step", 0.1, {kZero, kZero, kZero},
                  {{"alpha", 0.9}, {"momentum", 0.8}, {"weight_decay", 0.1}, {"epsilon", 1e-3}}),
      {f64({3}, {-1.19640113774453, -0.653549244598078, -0.15784159623306}),
       f64({3}, {0.129813266312736, 0.137256832408198, 0.139461712328142}),
       f64({3}, {0.155259586555613, 0.120730686715275, 0.0685401646259767}),
       f64({3}, {4.39682870681398, 3.0272038283728, 1.68562529414663})});
  expect_all(three_steps("adadelta_step", 0.5, {kZero, kZero},
                         {{"rho", 0.8}, {"weight_decay", 0.1}, {"epsilon", 1e-3}}),
             {f64({3}, {0.0181608243193015, 0.396275761832999, 0.711716573847314}),
              f64({3}, {0.23110733156314, 0.228973514972461, 0.226915651335389}),
              f64({3}, {0.00162777694743524, 0.00134237531708403, 0.00140921112395784})});
}

// By hand: u = 0.5 m + 0.5 g is 1, -0.5, 0.
TEST(TrainingSteps, Lion) {
  expect_all(run_reference_all(
                 "lion_step",
                 {f64({3}, {1, 2, 3}), f64({3}, {2, -1, 4}), f64({}, {0.1}), f64({3}, {0, 0, -4})},
                 {{"beta1", 0.5}, {"beta2", 0.75}, {"weight_decay", 1.0}}, 2),
             {f64({3}, {0.8, 1.9, 2.7}), f64({3}, {0.5, -0.25, -2})});
}

TEST(TrainingSteps, MasterScaleAndFoundInf) {
  const TestTensor values(DType::kBF16, {1}, {1}), gradient(DType::kBF16, {1}, {4});
  TestInputs inputs = {values,        gradient,     f32({}, {0.001}), kNone,
                       f32({1}, {1}), f32({}, {4}), f32({}, {0})};
  auto results = run_reference_all("sgd_step", inputs);
  EXPECT_TRUE(same(results[2], f32({1}, {0.999}), 1e-6));
  EXPECT_EQ(results[0].values()[0], 1);  // too small a change for bf16
  EXPECT_EQ(results[1].count(), 0);      // there is no momentum
  inputs[6] = f32({}, {1});
  results = run_reference_all("sgd_step", inputs);
  EXPECT_TRUE(same(results[2], f32({1}, {1})));
}

TEST(TrainingSteps, ScalesOfGradients) {
  const auto unscale = [](double found, double second) {
    return run_reference_all("amp_unscale",
                             {f32({2}, {4, second}), f32({}, {0.25}), f32({}, {found})});
  };
  expect_all(unscale(0, 8), {f32({2}, {1, 2}), f32({}, {0})});
  expect_all(unscale(1, 8), {f32({2}, {1, 2}), f32({}, {1})});
  EXPECT_EQ(unscale(0, kInf)[1].values()[0], 1);
  EXPECT_EQ(unscale(0, kNan)[1].values()[0], 1);
  const auto update = [](double scale, int64_t tracker, double found) {
    return run_reference_all("amp_update_scale",
                             {f32({}, {scale}), indices({}, {tracker}), f32({}, {found})},
                             {{"growth_interval", 3}});
  };
  expect_all(update(8, 1, 1), {f32({}, {4}), indices({}, {0})});
  expect_all(update(8, 1, 0), {f32({}, {8}), indices({}, {2})});
  expect_all(update(8, 2, 0), {f32({}, {16}), indices({}, {0})});
  expect_all(update(3e38, 2, 0), {f32({}, {3e38}), indices({}, {0})});
}

}  // namespace
}  // namespace anymps::testing
