// SPDX-License-Identifier: Apache-2.0
// Codes of boxes and prior boxes, with the results of paddle.vision.ops.box_coder and prior_box.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kPriors = f32({2, 4}, {0, 0, 4, 6, 1, 2, 5, 4}),
                 kVariances = f32({2, 4}, {0.1, 0.1, 0.2, 0.2, 0.5, 0.4, 0.3, 0.2}),
                 kBoxes = f32({3, 4}, {1, 1, 3, 5, 0, 2, 6, 3, 2, 0, 3, 8});
const Row kCodes = {0.5, -0.25, 0.1, 0.2,  1,   2,   -0.5, 0.25, 0,   0,   0,   0,
                    -1,  0.5,   0.3, -0.2, 0.2, 0.4, 0.6,  0.8,  0.1, 0.1, 0.1, 0.1};

void expect_boxes(const TestTensor& got, Shape shape, const Row& expected) {
  EXPECT_TRUE(same(got, f32(std::move(shape), expected), 1e-5));
}

TEST(PaddleBoxes, Encode) {
  expect_boxes(run_reference("box_coder", {kPriors, kBoxes, kVariances}), {3, 2, 4},
               {0.0,  0.0,        -3.465736, -2.027325, -0.5,  0.0,    -2.310491, 3.465736,
                2.5,  -0.8333334, 2.027325,  -8.958797, 0.0,   -0.625, 1.35155,   -3.465736,
                1.25, 1.666667,   -6.931472, 1.438411,  -0.25, 1.25,   -4.620981, 6.931472});
  expect_boxes(run_reference("box_coder", {kPriors, kBoxes},
                             {{"variance", Row{0.1, 0.2, 0.3, 0.4}}, {"normalized", false}}),
               {3, 2, 4},
               {-1.0, -0.3571429, -1.702752, -0.8411805, -3.0, -0.8333334, -1.702752, 1.277064,
                1.0,  -0.7142857, 1.121574,  -3.131907,  -1.0, -1.666667,  1.121574,  -1.013663,
                0.0,  0.3571429,  -3.054302, 0.628286,   -2.0, 0.8333334,  -3.054302, 2.746531});
}

TEST(PaddleBoxes, Decode) {
  expect_boxes(run_reference("box_coder", {kPriors, f32({3, 2, 4}, kCodes), kVariances},
                             {{"code", "decode"}}),
               {3, 2, 4}, {0.1595974, -0.2724326, 4.240403, 5.972432, 3.278584,   3.548729,
                           6.721416,  5.651271,   0.0,      0.0,      4.0,        6.0,
                           -1.188349, 2.439211,   3.188349, 4.360789, -0.1749938, -0.2805326,
                           4.334993,  6.760532,   1.139091, 2.059799, 5.260909,   4.100201});
  Row turned;  // [2, 3, 4]
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k) turned.push_back(kCodes[(j * 2 + i) * 4 + k]);
  expect_boxes(run_reference("box_coder", {kPriors, f32({2, 3, 4}, turned), kVariances},
                             {{"code", "decode"}, {"normalized", false}, {"axis", 1}}),
               {2, 3, 4}, {0.1994967, -0.317838, 4.300503,   5.967838,   0.0,       0.0,
                           4.0,       6.0,       -0.2187421, -0.3272884, 4.418742,  6.887288,
                           3.84823,   4.323093,  7.15177,    6.476907,   -1.735436, 2.658816,
                           2.735436,  4.541184,  1.173864,   2.089698,   5.326137,  4.150302});
}

TEST(PaddleBoxes, Priors) {
  const TestTensor x(DType::kF32, {1, 1, 1, 2}), image(DType::kF32, {1, 3, 8, 12});
  const auto all = run_reference_all("prior_box", {x, image},
                                     {{"min_sizes", Row{2, 3}},
                                      {"max_sizes", Row{4, 5}},
                                      {"aspect_ratios", Row{1, 2}},
                                      {"flip", true},
                                      {"clip", true}});
  expect_boxes(
      all[0], {1, 2, 8, 4},
      {0.1666667, 0.375,     0.3333333, 0.625,     0.1321489,  0.4116116, 0.3678511, 0.5883883,
       0.1910744, 0.3232233, 0.3089256, 0.6767767, 0.1321489,  0.3232233, 0.3678511, 0.6767767,
       0.125,     0.3125,    0.375,     0.6875,    0.07322332, 0.3674175, 0.4267767, 0.6325825,
       0.1616117, 0.2348349, 0.3383884, 0.7651651, 0.08862569, 0.2579385, 0.4113743, 0.7420615,
       0.6666667, 0.375,     0.8333333, 0.625,     0.6321489,  0.4116116, 0.8678511, 0.5883883,
       0.6910744, 0.3232233, 0.8089256, 0.6767767, 0.6321489,  0.3232233, 0.8678511, 0.6767767,
       0.625,     0.3125,    0.875,     0.6875,    0.5732233,  0.3674175, 0.9267767, 0.6325825,
       0.6616116, 0.2348349, 0.8383884, 0.7651651, 0.5886257,  0.2579385, 0.9113743, 0.7420615});
  Row variances;
  for (int64_t i = 0; i < 16; ++i) variances.insert(variances.end(), {0.1, 0.1, 0.2, 0.2});
  expect_boxes(all[1], {1, 2, 8, 4}, variances);
  expect_boxes(run_reference_all("prior_box", {x, image},
                                 {{"min_sizes", Row{2}},
                                  {"max_sizes", Row{5}},
                                  {"aspect_ratios", Row{2}},
                                  {"step_width", 5.0},
                                  {"step_height", 6.0},
                                  {"offset", 0.25},
                                  {"max_second", true}})[0],
               {1, 2, 3, 4},
               {0.02083333, 0.0625,    0.1875,      0.3125,     -0.0275949, -0.01014236,
                0.2359282,  0.3851424, -0.01368446, 0.09911165, 0.2220178,  0.2758884,
                0.4375,     0.0625,    0.6041667,   0.3125,     0.3890718,  -0.01014236,
                0.6525949,  0.3851424, 0.4029822,   0.09911165, 0.6386845,  0.2758884});
}

}  // namespace
}  // namespace anymps::testing
