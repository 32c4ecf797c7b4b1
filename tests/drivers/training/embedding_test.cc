// SPDX-License-Identifier: Apache-2.0
// Tables of rows, bags of rows and pooling to a given size; numbers from PyTorch.
#include "drivers/training/wave.h"

namespace anymps::testing {
namespace {

TEST(TrainingEmbedding, Gradient) {
  const TestTensor dy = wave({2, 2, 3}, 0.2), picked = indices({2, 2}, {1, 3, 1, 0});
  EXPECT_TRUE(same(run_reference("embedding_gradient", {dy, picked}, {{"rows", 4}}),
                   f64({4, 3}, {-0.378714873828998, -0.687766159183974, -0.903731521350306,
                                0.859250532074262, 0.884025515992359, 0.78915179347206, 0, 0, 0,
                                0.966184951612734, 0.994043202198076, 0.887362368633375}),
                   1e-11));
  EXPECT_TRUE(
      same(run_reference("embedding_gradient", {dy, picked},
                         {{"rows", 4}, {"padding_idx", 3}, {"scale_grad_by_freq", true}}),
           f64({4, 3}, {-0.378714873828998, -0.687766159183974, -0.903731521350306,
                        0.429625266037131, 0.44201275799618, 0.39457589673603, 0, 0, 0, 0, 0, 0}),
           1e-11));
}

TEST(TrainingEmbedding, Bags) {
  const TestTensor weight = wave({4, 3}, 0.1), picked = indices({5}, {0, 3, 1, 1, 2}),
                   offsets = indices({3}, {0, 2, 2}), dy = wave({3, 3}, 0.6),
                   samples = wave({5}, 0.4);
  struct Case {
    const char* mode;
    Row y, dweight;
  };
  for (const Case& c :
       {Case{"sum",
             {-0.15912179765071, -0.249573612410802, -0.306246809533834, 0, 0, 0, 0.697506242280332,
              0.41570337686771, 0.0776370095487432},
             {0.219882135986551, 0.321225627082348, 0.379092736490088, 0, 0, 0, 0.301088344246995,
              -0.0460936792306106, -0.387037139459577, 0.393067522955994, 0.574232012895159,
              0.677676893733114}},
        Case{"mean",
             {-0.0922961479448172, -0.0794858027818255, -0.0559174270970709, 0, 0, 0,
              0.732231444030251, 0.436399082160126, 0.0815021517602691},
             {0.282321236697518, 0.412442856669225, 0.48674227084766, 0, 0, 0, 0.316077964217054,
              -0.0483884433684141, -0.406305702144417, 0.282321236697518, 0.412442856669225,
              0.48674227084766}},
        Case{"max",
             {0.0998334166468282, 0.452886285379068, 0.744643119970859, 0, 0, 0, 0.732231444030251,
              0.436399082160126, 0.0815021517602691},
             {0.564642473395035, 0.82488571333845, 0.973484541695319, 0, 0, 0, 0.316077964217054,
              -0.0483884433684141, -0.406305702144417, 0, 0, 0}}}) {
    SCOPED_TRACE(c.mode);
    const NamedAttrs attrs = {{"mode", c.mode}, {"padding_idx", 1}};
    const bool sum = c.mode == std::string("sum"), max = c.mode == std::string("max");
    const std::optional<TestTensor> per_sample = sum ? std::optional(samples) : std::nullopt;
    const auto y = run_reference_all("embedding_bag", {weight, picked, offsets, per_sample}, attrs);
    EXPECT_TRUE(same(y[0], f64({3, 3}, c.y), 1e-11));
    const auto back = run_reference_all(
        "embedding_bag_gradient",
        {dy, weight, picked, offsets, per_sample, max ? std::optional(y[1]) : std::nullopt}, attrs);
    EXPECT_TRUE(same(back[0], f64({4, 3}, c.dweight), 1e-11));
    if (sum)
      EXPECT_TRUE(same(back[1],
                       f64({5}, {1.15484818025046, -1.49907973880793, 0, 0, 0.177210762894425}),
                       1e-11));
  }
  EXPECT_NE(error_of([&] {
              run_reference("embedding_bag", {weight, picked, indices({2}, {0, 6})});
            }).find("offset 1 is 6, must be from 0 to 5"),
            std::string::npos);
}

TEST(TrainingPooling, ToAGivenSize) {
  const TestTensor x = wave({1, 1, 5, 4}, 0.3), dy = wave({1, 1, 3, 3}, 1.1);
  const NamedAttrs attrs = {{"output_size", Ints{3, 3}}};
  EXPECT_TRUE(same(run_reference("adaptive_avg_pool", {x}, attrs),
                   f64({1, 1, 3, 3}, {0.68290039782611, 0.72565491365062, 0.670195441113606,
                                      -0.115643836189401, -0.241392241107133, -0.33446933861321,
                                      -0.420681792695571, -0.178305925255084, 0.0882028126977695}),
                   1e-11));
  EXPECT_TRUE(
      same(run_reference("adaptive_avg_pool_gradient", {dy, x}, attrs),
           f64({1, 1, 5, 4},
               {0.222801840015359,  0.471532927459754,  0.489726836482507,  0.240995749038112,
                0.356563684389817,  0.694050589760149,  0.610219762301949,  0.272732856931617,
                0.133761844374458,  0.222517662300395,  0.120492925819441,  0.0317371078935045,
                0.0893962381642428, 0.047819858501578,  -0.20849820920851,  -0.166921829545845,
                -0.044365606210215, -0.174697803798817, -0.328991135027951, -0.198658937439349}),
           1e-11));
  const auto most = run_reference_all("adaptive_max_pool", {x}, attrs);
  EXPECT_TRUE(same(most[0],
                   f64({1, 1, 3, 3}, {0.978196606808045, 0.862404227243338, 0.98710010101385,
                                      0.978196606808045, 0.836898790798498, 0.582330649524082,
                                      0.302023619026732, 0.626313030321656, 0.86583391112979}),
                   1e-11));
  EXPECT_TRUE(same(most[1], indices({1, 1, 3, 3}, {4, 2, 3, 4, 5, 6, 17, 18, 19})));
}

}  // namespace
}  // namespace anymps::testing
