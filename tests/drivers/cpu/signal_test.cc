// SPDX-License-Identifier: Apache-2.0
// Kernels of resizing, sampling, regions, stencils and Fourier transforms against the reference:
// every mode, and sizes that the samples of the records do not have.
#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TestTensor wave(Shape shape, DType dtype = DType::kF32, uint64_t seed = 5) {
  return TestTensor(dtype, std::move(shape)).fill(seed, -1, 1);
}

TEST(CpuResize, EveryMode) {
  const NamedAttrs sizes{{"sizes", Ints{2, 3, 40, 17}}};
  const auto with = [&](const char* mode) {
    NamedAttrs attrs = sizes;
    attrs.emplace_back("mode", mode);
    return attrs;
  };
  expect_same({"resize", "nearest", {wave({2, 3, 20, 30})}, with("nearest")}, 0);
  expect_same({"resize", "nearest", {spread(wave({2, 3, 20, 30}, DType::kI16))}, with("nearest")},
              0);
  expect_same({"resize", "separable", {wave({2, 3, 20, 30})}, with("linear")}, 1e-5);
  expect_same({"resize", "separable", {wave({2, 3, 20, 30}, DType::kF64)}, with("cubic")}, 1e-12);
  expect_same({"resize", "separable", {wave({2, 3, 20, 30}, DType::kF16)}, with("linear")}, 2e-3);
}

// Rows and columns of every length, channels first, last and in between, by every rule for places,
// up and down: taps that lie on one element, outside, or far apart.
TEST(CpuResize, RowsOfImages) {
  size_t number = 0;
  for (const Shape& x : {Shape{2, 3, 7, 9}, Shape{1, 2, 20, 33}, Shape{1, 1, 1, 50}})
    for (const auto& [height, width] :
         {std::pair<int64_t, int64_t>{14, 18}, {13, 70}, {5, 4}, {1, 100}, {28, 36}})
      for (const char* mode : {"linear", "cubic", "nearest"})
        for (const char* rule : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"})
          for (const int64_t channels : {0, 3, 16, 41}) {
            SCOPED_TRACE(fmt::format("{} {} {}", ++number, mode, rule));
            NamedAttrs attrs{{"mode", mode}, {"coordinate", rule}};
            Shape shape = x;
            Ints sizes{x[0], x[1], height, width};
            if (channels > 0) {
              shape = {x[0], x[2], x[3], channels};
              sizes = {x[0], height, width, channels};
            }
            attrs.emplace_back("sizes", sizes);
            if (number % 7 == 0 && *mode != 'n') attrs.emplace_back("antialias", true);
            if (number % 5 == 0 && *mode != 'n') attrs.emplace_back("exclude_outside", true);
            expect_same({"resize", *mode == 'n' ? "nearest" : "rows", {wave(shape)}, attrs},
                        *mode == 'n' ? 0 : 2e-5);
          }
}

TEST(CpuResize, NearestOfEveryElement) {
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64})
    for (const Shape& x : {Shape{2, 1, 6, 40}, Shape{1, 5, 20, 3}, Shape{1, 5, 6, 37}})
      for (const int64_t scale : {1, 2, 4}) {
        const Ints first{x[0], x[1], x[2] * scale, x[3] * scale},
            last{x[0], x[1] * scale, x[2] * scale, x[3]};
        for (const Ints& sizes : {first, last, Ints{x[0], x[1], 5, 2 * x[3] + 1}})
          expect_same({"resize",
                       "nearest",
                       {wave(x, dtype)},
                       {{"sizes", sizes}, {"mode", "nearest"}, {"nearest", "floor"}}},
                      0);
      }
}

// They are cut off, so the sums must be the same to the last bit.
TEST(CpuResize, Integers) {
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI32, DType::kU64})
    for (const char* mode : {"linear", "cubic"})
      for (const Ints& sizes : {Ints{2, 3, 23, 31}, Ints{2, 3, 14, 10}, Ints{2, 5, 7, 9},
                                Ints{2, 3, 7, 40}, Ints{2, 3, 3, 4}})
        for (const bool antialias : {false, true}) {
          TestTensor x = TestTensor(dtype, {2, 3, 7, 9}).fill(3, 0, 120);
          expect_same({"resize",
                       "integers",
                       {x},
                       {{"sizes", sizes}, {"mode", mode}, {"antialias", antialias}}},
                      0);
        }
}

// An element that is left out must not make NaN of another's infinity.
TEST(CpuResize, InfinitiesStayWhereTheyAre) {
  TestTensor x = wave({1, 1, 2, 40});
  static_cast<float*>(x.ptr())[7] = std::numeric_limits<float>::infinity();
  static_cast<float*>(x.ptr())[0] = -std::numeric_limits<float>::infinity();
  for (const char* rule : {"half_pixel", "align_corners", "asymmetric"})
    expect_same({"resize",
                 "rows",
                 {x},
                 {{"mode", "linear"}, {"coordinate", rule}, {"sizes", Ints{1, 1, 2, 80}}}},
                1e-5);
}

TEST(CpuResize, Gradient) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const Shape& x : {Shape{2, 3, 11, 50}, Shape{2, 3, 40, 7}})
      expect_as_reference("resize_gradient", {random_f32({2, 3, 30, 20}), random_f32(x)},
                          {{"mode", mode}}, 1e-5);
}

TEST(CpuSampling, EveryMode) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    expect_same({"grid_sample",
                 "corners",
                 {spread(wave({2, 5, 9, 8})), wave({2, 7, 6, 2}, DType::kF32, 8)},
                 {{"mode", mode}}},
                1e-5);
  const TestTensor rois(DType::kF32, {2, 4}, {1, 2, 9, 14, 0, 0, 20, 20});
  for (const char* mode : {"avg", "max"})
    expect_same({"roi_align",
                 "corners",
                 {wave({2, 5, 16, 18}), rois, TestTensor(DType::kI64, {2}, {1, 0})},
                 {{"output_height", 3}, {"output_width", 4}, {"mode", mode}}},
                1e-5);
  expect_same({"deform_conv",
               "columns",
               {wave({2, 4, 9, 10}), wave({6, 2, 3, 3}, DType::kF32, 6),
                wave({2, 36, 7, 8}, DType::kF32, 7), wave({6}), wave({2, 18, 7, 8})},
               {{"groups", 2}, {"offset_groups", 2}}},
              1e-5);
}

// Channels that are mixed together and one by one; places inside, outside and at the border, what
// lies outside being 0 or not; more places than are worked on at once.
TEST(CpuSampling, ChannelsAndBorders) {
  for (const int64_t channels : {1, 3, 4, 5, 9})
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (const double outside : {0.0, 2.5}) {
        TestTensor x = random_f32({2, channels, 9, 8}, 1, -2, 2);
        x.put({0, 0, 0, 0}, kInf);  // no place outside may see it
        TestTensor grid = random_f32({2, 30, 11, 2}, 5, -1.7, 1.7);
        for (int64_t i = 0; i < 30; ++i)
          for (int64_t k = 0; k < 2; ++k)
            grid.put({0, i, 3, k}, i % 2 == 0 ? 1 : -1), grid.put({1, i, 4, k}, i % 3 == 0 ? 9 : 0);
        for (const char* padding : {"constant", "border", "reflection"})
          expect_same({"grid_sample",
                       "corners",
                       {x, grid},
                       {{"mode", mode}, {"constant_value", outside}, {"padding", padding}}},
                      1e-5);
      }
}

TEST(CpuRegions, MaxRoiPool) {
  TestTensor rois = random_f32({40, 5}, 1, 0, 19);
  for (int64_t i = 0; i < 40; ++i) {
    float* row = static_cast<float*>(rois.ptr()) + i * 5;
    row[0] = static_cast<float>(i % 3);
  }
  for (double scale : {1.0, 0.25})
    expect_as_reference("max_roi_pool", {random_f32({3, 5, 20, 15}).scrambled(), rois},
                        {{"pooled_shape", Ints{3, 4}}, {"spatial_scale", scale}});
}

TEST(CpuRegions, AffineGrid) {
  for (bool align : {false, true})
    for (const Ints& size : {Ints{3, 1, 40, 50}, Ints{3, 1, 7, 8, 9}}) {
      const auto d = static_cast<int64_t>(size.size()) - 2;
      expect_as_reference("affine_grid", {random_f32({3, d, d + 1}).scrambled()},
                          {{"size", size}, {"align_corners", align}}, 1e-6);
    }
}

TEST(CpuStencil, EveryModeAndBorder) {
  for (const char* reduce : {"sum", "product", "min", "max", "arg_min", "arg_max"})
    for (const char* border : {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"}) {
      const NamedAttrs attrs = {{"reduce", reduce},
                                {"border", border},
                                {"value", 0.5},
                                {"padding", "same_upper"},
                                {"dilations", Ints{1, 2}}};
      const TestTensor x = random_f32({3, 20, 30}, 1, 0.5, 2),
                       weights = random_f32({3, 4}, 2, 0.5, 2);
      expect_as_reference("stencil", {x, weights}, attrs, 1e-5);
      expect_as_reference("stencil", {x.scrambled(), weights.scrambled()}, attrs, 1e-5);
    }
  const TestInputs halves = {TestTensor(DType::kF16, {5}), TestTensor(DType::kF16, {3})};
  EXPECT_FALSE(prepare_cpu("stencil", halves, {{"value", 1e6}}).kernel) << "not a half";
}

TEST(CpuDetection, ManyBoxesAndClasses) {
  const TestTensor boxes = random_f32({3, 200, 4}, 1, 0, 10),
                   scores = random_f32({3, 7, 200}, 2, 0, 1);
  const auto scalar = [](double value) { return TestTensor(DType::kF32, {}, {value}); };
  for (int most : {0, 3, 500})
    for (bool centres : {false, true})
      expect_as_reference(
          "non_max_suppression",
          {boxes, scores, TestTensor(DType::kI64, {}, {double(most)}), scalar(0.3), scalar(0.2)},
          {{"center_point_box", centres}});
  for (const char* mode : {"corners_height_first", "corners_width_first", "centers_height_first",
                           "centers_width_first"})
    for (bool per_class : {false, true}) {
      const NamedAttrs attrs = {{"coordinates", mode},
                                {"per_class", per_class},
                                {"iou_threshold", 0.3},
                                {"score_threshold", 0.2}};
      expect_as_reference("suppress_boxes", {boxes, random_f32({3, 200, 7}, 3, 0, 1)}, attrs);
      expect_as_reference("suppress_boxes",
                          {boxes, random_f32({3, 200, 1}, 4, 0, 1),
                           TestTensor(DType::kI32, {3, 200}).fill(5, 0, 4)},
                          attrs);
    }
}

TEST(CpuFourier, ManyLengths) {
  for (const int64_t n : {1, 2, 3, 16, 31, 32, 37, 100, 360, 512, 961, 1009})
    for (const bool inverse : {false, true}) {
      expect_same({"fft", "stockham", {wave({3, n}, DType::kC64)}, {{"inverse", inverse}}}, 2e-4);
      expect_same({"fft", "stockham", {wave({3, n}, DType::kC128)}, {{"inverse", inverse}}}, 1e-9);
      expect_same({"fft", "stockham", {wave({3, n}, DType::kF64)}, {{"inverse", inverse}}}, 1e-9);
    }
  for (const int64_t n : {2, 9, 64, 101}) {
    expect_same({"real_to_hermitean_fft", "stockham", {wave({3, n}, DType::kF64)}}, 1e-9);
    expect_same({"hermitean_to_real_fft", "stockham", {wave({3, n}, DType::kC128)}}, 1e-9);
  }
  expect_same({"dft", "stockham", {wave({2, 1021, 1}, DType::kF64)}, {{"onesided", true}}}, 1e-9);
  expect_same(
      {"stft", "stockham", {wave({2, 700, 1}), TestTensor(DType::kI64, {}, {100}), wave({257})}},
      1e-4);
}

}  // namespace
}  // namespace anymps::testing
