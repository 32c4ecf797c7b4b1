// SPDX-License-Identifier: Apache-2.0
// Normalizations that train, their gradients, and those of softmax; numbers from PyTorch.
#include "drivers/training/wave.h"

namespace anymps::testing {
namespace {

TEST(TrainingNorm, BatchNorm) {
  const TestTensor x = wave({2, 2, 3}, 0.1), dy = wave({2, 2, 3}, 2), gamma = wave({2}, 0.5);
  const auto forward = run_reference_all(
      "batch_norm_training", {x, gamma, wave({2}, 1.5), wave({2}, 0.9), wave({2}, 0.4, 1.5)},
      {{"momentum", 0.3}, {"epsilon", 1e-3}});
  expect_all(forward, {f64({2, 2, 3}, {0.414006196958724, 1.04834929062957, 1.57255954196995,
                                       1.68321522243775, 1.74561226506609, 1.67676010933131,
                                       1.55025902663332, 1.01872612531317, 0.381069738119584,
                                       0.500046919745653, 0.182510748401943, -0.0547161638650858}),
                       f64({2}, {0.424582583324567, 0.185295297568635}),
                       f64({2}, {3.74768694932279, 1.26879525123645}),
                       f64({2}, {0.675703611736609, 0.724159188179875}),
                       f64({2}, {1.34786444971126, 1.76055918205945})});
  expect_all(
      run_reference_all("batch_norm_training_gradient", {dy, x, forward[1], forward[2], gamma}),
      {f64({2, 2, 3},
           {1.74954379842811, 1.5180779973317, 1.0910963572345, 0.378459310390156,
            0.0206560279012398, -0.282594750134293, -1.19977098285221, -1.52502396282119,
            -1.63392320732092, -0.343835968420781, -0.0606945017207449, 0.288009881984423}),
       f64({2}, {-0.377259665916937, 0.395531516128851}),
       f64({2}, {-0.845766594218025, -2.52854684983443})});
  expect_all(run_reference_all(
                 "batch_norm_training_gradient",
                 {dy, x, wave({2}, 0.9), f64({2}, {0.727312478366999, 0.674639251109578}), gamma},
                 {{"training", false}}),
             {f64({2, 2, 3},
                  {0.317064899004511, 0.243135292300639, 0.136298464383093, 0.0162879251833321,
                   -0.171186934517321, -0.335492445705268, -0.307269647244902, -0.346083893959785,
                   -0.33805730918015, -0.42038797707013, -0.28395896342706, -0.109097436195853}),
              f64({2}, {0.14746209452192, 1.52348875999836}),
              f64({2}, {-0.845766594218025, -2.52854684983443})});
}

// Of halves the statistics and the gradients of wide parameters are f32.
TEST(TrainingNorm, BatchNormDTypes) {
  const TestTensor x = TestTensor(DType::kBF16, {4, 3}).fill(1), gamma = random_f32({3});
  const auto forward = run_reference_all("batch_norm_training", {x, gamma});
  EXPECT_EQ(forward[0].dtype(), DType::kBF16);
  EXPECT_EQ(forward[1].dtype(), DType::kF32);
  const auto back =
      run_reference_all("batch_norm_training_gradient", {x, x, forward[1], forward[2], gamma});
  EXPECT_EQ(back[0].dtype(), DType::kBF16);
  EXPECT_EQ(back[1].dtype(), DType::kF32);
}

TEST(TrainingNorm, LayerNormGradient) {
  const TestTensor x = wave({3, 4}, 0.1), dy = wave({3, 4}, 2), gamma = wave({4}, 0.5);
  const std::vector<TestTensor> expected = {
      f64({3, 4}, {-0.271142536328582, 0.448004589551103, 0.307002950985151, -0.483865004207672,
                   0.872204057471578, -0.205613385570991, -0.690974735781871, 0.0243840638812864,
                   0.28128916957932, -0.3764098371153, -0.299178003421125, 0.394298670957105}),
      f64({4}, {-2.89182335951239, -0.93733917825466, 0.666323161513733, 1.68583681759125}),
      f64({4}, {-0.392188460848861, -0.768611613255193, -1.04100678952751, -1.17250658042089})};
  expect_all(run_reference_all(
                 "layer_norm_gradient",
                 {dy, x, f64({3, 1}, {0.558244705887535, 0.774386971923247, -0.417814856470978}),
                  f64({3, 1}, {3.02062848284954, 4.16316482639812, 2.72876902266448}), gamma}),
             expected);
  expect_all(run_reference_all("layer_norm_gradient", {dy, x, std::nullopt, std::nullopt, gamma},
                               {{"epsilon", 1e-2}}),
             expected);
}

TEST(TrainingNorm, RmsNorm) {
  const TestTensor x = wave({3, 4}, 0.1), dy = wave({3, 4}, 2), gamma = wave({4}, 0.5);
  const auto forward = run_reference_all("rms_norm", {x, gamma}, {{"epsilon", 1e-2}}, 2);
  EXPECT_TRUE(same(
      forward[0],
      f64({3, 4}, {0.0737453157560834, 0.533343260429589, 1.08511928998788, 1.44045984389327,
                   0.591285363667258, 0.875732648812221, 0.854151082283891, 0.537829180480324,
                   0.0703080380960965, -0.391168519654862, -1.0412554020704, -1.53991629053227}),
      1e-11));
  expect_all(
      run_reference_all("rms_norm_gradient", {dy, x, forward[1], gamma}),
      {f64({3, 4}, {0.617848232967454, 0.576933909488881, 0.168063526978042, -0.455897287520979,
                    0.584253849071736, 0.11179369761812, -0.456355672115004, -0.882556166115146,
                    -0.912203242181588, -0.85648740925864, -0.367644418924602, 0.416794422106757}),
       f64({4}, {-0.411753720041492, 0.158335498911733, 0.258915174377439, -0.162624188618485})});
}

TEST(TrainingNorm, GroupNorm) {
  const TestTensor x = wave({2, 4, 2}, 0.1), dy = wave({2, 4, 2}, 2), gamma = wave({4}, 0.5);
  const auto forward =
      run_reference_all("group_norm", {x, gamma}, {{"groups", 2}, {"epsilon", 1e-2}}, 3);
  EXPECT_TRUE(same(
      forward[1],
      f64({2, 2}, {0.558244705887535, 0.774386971923247, -0.417814856470978, -0.850154875446339}),
      1e-11));
  EXPECT_TRUE(
      same(forward[2],
           f64({2, 2}, {3.02062848284954, 4.16316482639812, 2.72876902266448, 5.30613267876951}),
           1e-11));
  expect_all(
      run_reference_all("group_norm_gradient", {dy, x, forward[1], forward[2], gamma},
                        {{"groups", 2}}),
      {f64({2, 4, 2},
           {-0.0464544219036425, 0.0606821432455324, 0.295632868310413, -0.309860589652303,
            0.768962857445985, -0.22135298564974, -0.59294362522022, 0.0453337534239768,
            0.046655631191203, 0.00379641028835054, -0.29709515731285, 0.246643115833297,
            -1.48663787855508, 0.223368695869183, 0.971357033794369, 0.291912148891528}),
       f64({4}, {-3.0987143074015, 0.800934030981629, -1.19017927527988, 2.8885526372148}),
       f64({4}, {-0.178189748818153, -0.339787531200117, -0.323655068061118, -0.138230652073124})});
}

TEST(TrainingSoftmax, GradientsFromTheResult) {
  const TestTensor x = wave({2, 3}, 0.1), dy = wave({2, 3}, 2);
  const TestTensor y = run_reference("softmax", {x}),
                   log = run_reference("log_softmax", {x}, {{"axis", 0}});
  EXPECT_TRUE(same(run_reference("softmax_result_gradient", {dy, y}),
                   f64({2, 3}, {0.0688183052767155, 0.0282433096867278, -0.0970616149634433,
                                0.11379647144124, -0.00535893593885311, -0.108437535502387}),
                   1e-11));
  EXPECT_TRUE(same(run_reference("log_softmax_gradient", {dy, log}, {{"axis", 0}}),
                   f64({2, 3}, {0.624751497299764, 0.563381893879114, 0.508820112415299,
                                -0.624751497299764, -0.563381893879114, -0.508820112415299}),
                   1e-11));
}

}  // namespace
}  // namespace anymps::testing
