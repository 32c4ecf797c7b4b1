// SPDX-License-Identifier: Apache-2.0
// Expected numbers are those of ONNX's reference evaluator.
#include <numeric>

#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::run_reference;
using testing::same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

struct GridCase {
  const char *mode, *padding;
  bool align_corners;
  Values expected;
};

class ReferenceGridSample : public ::testing::TestWithParam<GridCase> {};

TEST_P(ReferenceGridSample, ModesAndPaddings) {
  Values ramp(12);
  std::iota(ramp.begin(), ramp.end(), 0);
  const TestTensor x(DType::kF32, {1, 1, 3, 4}, ramp);
  const TestTensor grid(DType::kF32, {1, 2, 3, 2},
                        {-1, -1, -0.5, -0.5, -0.2, 0.3, 0, 0, 0.5, 1.2, 1.6, -1.7});
  const GridCase& c = GetParam();
  EXPECT_TRUE(same(
      run_reference("grid_sample", {x, grid},
                    {{"mode", c.mode}, {"padding", c.padding}, {"align_corners", c.align_corners}}),
      TestTensor(DType::kF32, {1, 1, 2, 3}, c.expected), 2e-5));
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferenceGridSample,
    ::testing::Values(
        GridCase{"linear", "constant", false, {0, 1.5, 6.8999996, 5.5, 2.099998, 0}},
        GridCase{"linear", "constant", true, {0, 2.75, 6.3999996, 5.5, 8.1999998, 0.090000115}},
        GridCase{"linear", "border", false, {0, 1.5, 6.8999996, 5.5, 10.5, 3}},
        GridCase{"linear", "border", true, {0, 2.75, 6.3999996, 5.5, 10.25, 3}},
        GridCase{"linear", "reflection", false, {0, 1.5, 6.8999996, 5.5, 10.5, 4.5000005}},
        GridCase{"linear", "reflection", true, {0, 2.75, 6.3999996, 5.5, 9.4499998, 4.9000006}},
        GridCase{"nearest", "constant", false, {0, 0, 5, 6, 0, 0}},
        GridCase{"nearest", "constant", true, {0, 1, 5, 6, 10, 0}},
        GridCase{"nearest", "border", false, {0, 0, 5, 6, 10, 3}},
        GridCase{"nearest", "border", true, {0, 1, 5, 6, 10, 3}},
        GridCase{"nearest", "reflection", false, {0, 0, 5, 6, 10, 6}},
        GridCase{"nearest", "reflection", true, {0, 1, 5, 6, 10, 6}},
        GridCase{"cubic",
                 "constant",
                 false,
                 {-0.234375, 1.286499, 8.0827684, 5.5, 2.1509984, 0.011840454}},
        GridCase{"cubic", "constant", true, {0, 2.4127197, 7.241972, 5.5, 9.2297506, 0.055019073}},
        GridCase{"cubic", "border", false, {-0.46875, 1.171875, 7.3196297, 5.5, 10.59375, 3}},
        GridCase{"cubic", "border", true, {0, 2.2929688, 6.8050032, 5.5, 10.332031, 3}},
        GridCase{
            "cubic", "reflection", false, {-0.9375, 1.171875, 7.3196297, 5.5, 11.07375, 4.205626}},
        GridCase{
            "cubic", "reflection", true, {0, 1.8828125, 6.9940033, 5.5, 10.143188, 4.4035001}}));

TEST(ReferenceGridSample, PlacesAndConstant) {
  const TestTensor x(DType::kF32, {1, 1, 2, 2}, {1, 2, 3, 4});
  const TestTensor grid(DType::kF32, {1, 1, 3, 2}, {1, 0, 0.5, 0.5, 7, 7});
  EXPECT_TRUE(same(
      run_reference("grid_sample", {x, grid}, {{"normalized", false}, {"constant_value", 9.0}}),
      TestTensor(DType::kF32, {1, 1, 1, 3}, {2, 2.5, 9})));
  // Relative to itself, a tensor sampled at 0 is itself.
  const TestTensor zeros(DType::kF32, {1, 2, 2, 2});
  EXPECT_TRUE(same(run_reference("grid_sample", {x, zeros}, {{"relative", true}}), x));
}

TEST(ReferenceAffineGrid, Both) {
  const TestTensor theta(DType::kF32, {1, 2, 3}, {1, 0.5, 0.1, -0.2, 2, 0.3});
  const auto run = [&](bool align) {
    return run_reference("affine_grid", {theta},
                         {{"size", Ints{1, 1, 2, 3}}, {"align_corners", align}});
  };
  EXPECT_TRUE(same(run(false),
                   TestTensor(DType::kF32, {1, 2, 3, 2},
                              {-0.81666666, -0.56666666, -0.15, -0.7, 0.51666665, -0.83333331,
                               -0.31666666, 1.4333334, 0.35, 1.3, 1.0166667, 1.1666666}),
                   1e-6));
  EXPECT_TRUE(same(run(true),
                   TestTensor(DType::kF32, {1, 2, 3, 2},
                              {-1.4, -1.5, -0.4, -1.7, 0.6, -1.9, -0.4, 2.5, 0.6, 2.3, 1.6, 2.1}),
                   1e-6));
}

struct RoiCase {
  const char* mode;
  bool half_pixel;
  Values expected;
};

class ReferenceRoiAlign : public ::testing::TestWithParam<RoiCase> {};

TestTensor squares() {
  Values values;
  for (int i = 0; i < 36; ++i) values.push_back(i * i / 10.0);
  return TestTensor(DType::kF32, {1, 1, 6, 6}, values);
}

const TestTensor& regions() {
  static const TestTensor rois(DType::kF32, {2, 4}, {0.5, 1, 4.2, 5, 1, 1, 9, 9});
  return rois;
}

TEST_P(ReferenceRoiAlign, Modes) {
  EXPECT_TRUE(same(run_reference("roi_align", {squares(), regions(), TestTensor(DType::kI64, {2})},
                                 {{"mode", GetParam().mode},
                                  {"half_pixel", GetParam().half_pixel},
                                  {"output_height", 2},
                                  {"output_width", 2},
                                  {"sampling_ratio", 2}}),
                   TestTensor(DType::kF32, {2, 1, 2, 2}, GetParam().expected), 1e-5));
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferenceRoiAlign,
    ::testing::Values(
        RoiCase{
            "avg", true, {10.796249, 14.80625, 49.016251, 57.466251, 35.25, 22.25, 52.875, 30.625}},
        RoiCase{
            "avg", false, {19.85125, 25.171249, 66.471252, 76.231247, 47.8, 28.25, 54.5, 30.625}},
        RoiCase{
            "max", true, {10.351251, 17.156256, 38.281254, 55.586273, 19.6, 42.05, 57.8, 122.5}},
        RoiCase{"max", false, {17.75, 17.915625, 46.248123, 44.240627, 78.4, 84.1, 115.6, 122.5}}));

TEST(ReferenceRoiAlign, SamplesByTheRegionsSize) {
  EXPECT_TRUE(
      same(run_reference("roi_align", {squares(), regions(), TestTensor(DType::kI64, {2})},
                         {{"output_height", 2}, {"output_width", 2}, {"spatial_scale", 0.5}}),
           TestTensor(DType::kF32, {2, 1, 2, 2},
                      {1.94875, 2.6237502, 9.4037495, 11.188749, 6.75, 9.95, 37.95, 45.95}),
           1e-5));
  EXPECT_EQ(
      error_of([] {
        run_reference("roi_align", {squares(), regions(), TestTensor(DType::kI64, {2}, {0, 1})});
      }),
      "[roi_align] a region is of image 1, there are 1");
}

TEST(ReferenceMaxRoiPool, CellsByHand) {
  Values ramp(16);
  std::iota(ramp.begin(), ramp.end(), 0);
  const TestTensor x(DType::kF32, {1, 1, 4, 4}, ramp);
  // Columns 0 to 2 and rows 1 to 3; then one that hangs out of x.
  const TestTensor rois(DType::kF32, {2, 5}, {0, 0, 1, 2, 3, 0, 3, 3, 9, 9});
  EXPECT_TRUE(same(run_reference("max_roi_pool", {x, rois}, {{"pooled_shape", Ints{2, 2}}}),
                   TestTensor(DType::kF32, {2, 1, 2, 2}, {9, 10, 13, 14, 15, 0, 0, 0})));
}

TEST(ReferenceCenterCropPad, OddElementsGoToTheEnd) {
  const TestTensor x(DType::kI32, {5}, {1, 2, 3, 4, 5});
  const auto run = [&](int64_t extent) {
    return run_reference("center_crop_pad", {x}, {{"shape", Ints{extent}}}).values();
  };
  EXPECT_EQ(run(2), (Values{2, 3}));
  EXPECT_EQ(run(3), (Values{2, 3, 4}));
  EXPECT_EQ(run(8), (Values{0, 1, 2, 3, 4, 5, 0, 0}));
}

TEST(ReferenceDeformConv, OffsetsByOneTap) {
  Values ramp(9), offset(32);
  std::iota(ramp.begin(), ramp.end(), 0);
  offset[0] = 0.5;           // tap 0, y, at 0,0
  offset[5 * 4 + 1] = -0.1;  // tap 2, x, at 0,1
  offset[7 * 4 + 3] = 2.5;   // tap 3, x, at 1,1: outside
  EXPECT_TRUE(
      same(run_reference("deform_conv", {TestTensor(DType::kF32, {1, 1, 3, 3}, ramp),
                                         TestTensor(DType::kF32, {1, 1, 2, 2}, {1, 2, 3, 4}),
                                         TestTensor(DType::kF32, {1, 8, 2, 2}, offset),
                                         TestTensor(DType::kF32, {1}, {0.5})}),
           TestTensor(DType::kF32, {1, 1, 2, 2}, {29, 37.2, 57.5, 35.5}), 1e-6));
}

}  // namespace
}  // namespace anymps
