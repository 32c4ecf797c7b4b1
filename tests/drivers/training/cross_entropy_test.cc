// SPDX-License-Identifier: Apache-2.0
// Losses against numbers of classes; numbers from PyTorch.
#include "drivers/training/wave.h"

namespace anymps::testing {
namespace {

const TestTensor kX = wave({3, 4}, 0.1), kWeight = wave({4}, 0.5, 1.2);
const TestTensor kTarget = indices({3}, {2, 1, 3});

TEST(TrainingLoss, Nll) {
  const NamedAttrs attrs = {{"ignore_index", 1}};
  const TestTensor total = f64({}, {4.34501563387093});
  expect_all(run_reference_all("nll_loss", {kX, kTarget, kWeight}, attrs),
             {f64({}, {0.0657650482561305}), total});
  EXPECT_TRUE(
      same(run_reference("nll_loss", {kX, kTarget}, {{"ignore_index", 1}, {"reduction", "none"}}),
           f64({3}, {-0.744643119970859, 0, 0.856477974165001}), 1e-11));
  EXPECT_TRUE(same(
      run_reference("nll_loss_gradient", {f64({}, {2}), kX, kTarget, kWeight, total}, attrs),
      f64({3, 4}, {0, 0, -0.987699092598147, 0, 0, 0, 0, 0, 0, 0, 0, -1.01230090740185}), 1e-11));
}

TEST(TrainingLoss, CrossEntropy) {
  struct Case {
    const char* reduction;
    double smoothing;
    Row loss, dx;
  };
  for (const Case& c :
       {Case{"none",
             0,
             {2.67718055731505, 0, 4.15138629143458},
             {0.485058189647412, 0.690434929157182, -2.29433729658431, 1.11884417777972, 0, 0, 0, 0,
              1.27621699760819, 0.885123909525634, 0.63797268411696, -2.79931359125078}},
        Case{"none",
             0.2,
             {2.70190375583131, 0, 3.91391692182291},
             {0.352383402326504, 0.533547997019676, -1.8243376371022, 0.938406237756024, 0, 0, 0, 0,
              1.12681137053027, 0.721536318917196, 0.465317023722858, -2.31366471317033}},
        Case{"mean",
             0,
             {1.57158625518365},
             {0.111635545305341, 0.158902749112109, -0.528038904785323, 0.257500610367874, 0, 0, 0,
              0, 0.29371977114642, 0.20371017830771, 0.146828627990136, -0.644258577444266}},
        Case{"mean",
             0.2,
             {1.52262298576824},
             {0.0811006063084218, 0.122795414787574, -0.419869061662483, 0.215973040566487, 0, 0, 0,
              0, 0.259334249972861, 0.166060695683708, 0.10709214026655, -0.53248708592312}},
        Case{"sum",
             0.2,
             {6.61582067765422},
             {0.352383402326504, 0.533547997019676, -1.8243376371022, 0.938406237756024, 0, 0, 0, 0,
              1.12681137053027, 0.721536318917196, 0.465317023722858, -2.31366471317033}}}) {
    SCOPED_TRACE(fmt::format("{} {}", c.reduction, c.smoothing));
    const NamedAttrs attrs = {
        {"ignore_index", 1}, {"reduction", c.reduction}, {"label_smoothing", c.smoothing}};
    const Shape shape = c.loss.size() > 1 ? Shape{3} : Shape{};
    const auto loss = run_reference_all("cross_entropy", {kX, kTarget, kWeight}, attrs);
    EXPECT_TRUE(same(loss[0], f64(shape, c.loss), 1e-11));
    const TestTensor dloss = f64(shape, Row(c.loss.size(), 1.5));
    EXPECT_TRUE(
        same(run_reference("cross_entropy_gradient", {dloss, kX, kTarget, kWeight, loss[1]}, attrs),
             f64({3, 4}, c.dx), 1e-11));
  }
}

TEST(TrainingLoss, CrossEntropyOfAnImage) {
  const TestTensor x = wave({1, 3, 2, 2}, 0.3), target = indices({1, 2, 2}, {0, 2, 1, -100});
  const auto loss = run_reference_all("cross_entropy", {x, target});
  EXPECT_TRUE(same(loss[0], f64({}, {1.42627391102569}), 1e-11));
  EXPECT_TRUE(same(
      run_reference("cross_entropy_gradient", {f64({}, {1}), x, target, std::nullopt, loss[1]}),
      f64({1, 3, 2, 2}, {-0.241768287104109, 0.129342275896265, 0.170609111867814, 0,
                         0.181222581465454, 0.160513009579398, -0.204399227465895, 0,
                         0.0605457056386543, -0.289855285475663, 0.0337901155980803, 0}),
      1e-11));
}

TEST(TrainingLoss, LabelsOutOfRangeAreErrors) {
  for (const int64_t label : {-1, 4})
    EXPECT_NE(error_of([&] {
                run_reference("nll_loss", {kX, indices({3}, {0, label, 1})});
              }).find("out of range for 4 classes"),
              std::string::npos);
}

}  // namespace
}  // namespace anymps::testing
