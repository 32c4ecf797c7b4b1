// SPDX-License-Identifier: Apache-2.0
// Kernels over groups, lines and looked-up elements against the reference: sizes that take several
// threads, axes in every order of memory, and elements that come more than once.
#include <cmath>

#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuGroups, SumsOfBroadcasts) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kC64})
    for (const Shape& like :
         {Shape{70}, Shape{60, 1}, Shape{5, 1, 1}, Shape{1, 60, 70}, Shape{}, Shape{5, 60, 70}}) {
      const TestTensor x = TestTensor(dtype, {5, 60, 70}).fill(1, 1, 9);  // nothing cancels
      expect_as_reference("sum_to", {x, TestTensor(dtype, like)}, {}, 1e-5);
      expect_as_reference("sum_to", {x.scrambled(), TestTensor(dtype, like)}, {}, 1e-5);
    }
}

TEST(CpuGroups, TileGradient) {
  for (const Ints& repeats : {Ints{4, 1, 1}, Ints{1, 3, 2}, Ints{2, 2, 7}, Ints{1, 1, 1}})
    expect_as_reference("tile_gradient", {random_f32({8, 42, 70})}, {{"repeats", repeats}}, 1e-5);
}

TEST(CpuGroups, VarianceAlongAnyAxes) {
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}, Ints{}}) {
    expect_as_reference("variance", {random_f32({30, 40, 50}, 1, 99, 101)}, {{"axes", axes}}, 1e-4);
    expect_as_reference("variance", {random_f32({30, 40, 50}).scrambled(), random_f32({40, 1}, 2)},
                        {{"axes", axes}}, 1e-4);
  }
}

TEST(CpuGroups, GradientsOfNormalizations) {
  struct Case {
    Shape x, statistics, gamma, gradients;
    Ints axes, parameter_axes;
  };
  // Of a batch, of rows, and of images with channels last.
  for (const Case& c :
       {Case{{6, 70, 9, 8}, {1, 70, 1, 1}, {1, 70, 1, 1}, {1, 70, 1, 1}, {0, 2, 3}, {0, 2, 3}},
        Case{{90, 130}, {90, 1}, {1, 130}, {90, 1}, {1}, {0}},
        Case{{6, 9, 8, 70}, {6, 1, 1, 70}, {70}, {6, 1, 1, 70}, {1, 2}, {0, 1, 2}}})
    for (DType dtype : {DType::kF32, DType::kF64}) {
      const auto make = [&](const Shape& shape, uint64_t seed, double low = -1) {
        return TestTensor(dtype, shape).fill(seed, low, 1);
      };
      const TestTensor dy = make(c.x, 1), x = make(c.x, 2), mean = make(c.statistics, 3),
                       variance = make(c.statistics, 4, 0.2), gamma = make(c.gamma, 5);
      const NamedAttrs parameters = {{"axes", c.parameter_axes}};
      expect_as_reference("norm_gamma_gradient", {dy, x, mean, variance}, parameters, 1e-4);
      expect_as_reference("norm_beta_gradient", {dy, x}, parameters, 1e-4);
      const NamedAttrs attrs = {{"axes", c.axes}};
      expect_as_reference("norm_gradient", {dy, x, mean, variance}, attrs, 1e-4);
      expect_as_reference("norm_gradient", {dy, x.scrambled(), mean, variance, gamma}, attrs, 1e-4);
      expect_as_reference("norm_gradient",
                          {dy, x, mean, variance, gamma, make(c.gradients, 6), std::nullopt}, attrs,
                          1e-4);
    }
}

TEST(CpuLoss, CrossEntropyOfManyLines) {
  for (const char* reduction : {"none", "sum", "mean"})
    for (int axis : {0, 1, 2}) {
      const NamedAttrs attrs = {{"axis", axis}, {"reduction", reduction}};
      const Shape shape = {20, 30, 40};
      Shape loss;
      if (reduction == std::string("none")) {
        loss = shape;
        loss[static_cast<size_t>(axis)] = 1;
      }
      const TestTensor x = random_f32(shape, 1, -30, 30), labels = random_f32(shape, 2, 0, 1);
      expect_as_reference("softmax_cross_entropy", {x, labels.scrambled()}, attrs, 1e-5);
      expect_as_reference("softmax_cross_entropy_gradient", {random_f32(loss, 3), x, labels}, attrs,
                          1e-5);
    }
}

TEST(CpuLoss, NanAndInfinityAreAsInTheReference) {
  const double nan = std::nan(""), inf = INFINITY;
  const TestTensor x(DType::kF32, {4, 3}, {1, nan, 2, inf, 0, 1, -inf, -inf, -inf, -inf, 1, 2});
  const TestTensor labels = random_f32({4, 3}, 2, 0.1, 1);
  expect_as_reference("softmax_cross_entropy", {x, labels}, {}, 1e-5);
  expect_as_reference("softmax_cross_entropy_gradient", {random_f32({4, 1}), x, labels}, {}, 1e-5);
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

TEST(CpuPlacement, ReverseSequence) {
  const TestTensor lengths = TestTensor(DType::kI64, {30}).fill(1, 0, 40);
  for (DType dtype : {DType::kF32, DType::kI8, DType::kC64}) {
    expect_as_reference("reverse_sequence", {TestTensor(dtype, {40, 30, 20}).fill(2), lengths});
    expect_as_reference("reverse_sequence",
                        {TestTensor(dtype, {30, 7, 40}).fill(2).scrambled(), lengths},
                        {{"batch_axis", 0}, {"time_axis", 2}});
  }
  TestInputs inputs = {random_f32({4, 2}), TestTensor(DType::kI32, {2}, {1, 5})};
  const Prepared prepared = prepare_cpu("reverse_sequence", inputs);
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[reverse_sequence] length 5 of sequence 1 is not in [0, 4]");
}

TEST(CpuPlacement, Samples) {
  for (const char* op : {"eye_like", "planar", "reinterpret"})
    EXPECT_GE(expect_samples_as_reference(op, kAny), 4) << op;
  for (int axis : {0, 1, 2})
    expect_as_reference("coordinate_along_axis", {},
                        {{"shape", Ints{50, 60, 70}}, {"axis", axis}, {"dtype", DType::kF16}});
}

TEST(CpuLookup, LabelsOfManyKeys) {
  for (DType dtype : {DType::kI64, DType::kF32, DType::kF64, DType::kU8, DType::kBool}) {
    const TestTensor keys = TestTensor(dtype, {100}).fill(1, 0, 80);  // some come twice
    const TestTensor x = TestTensor(dtype, {60, 70}).fill(2, 0, 100);
    expect_as_reference("label_encode",
                        {x.scrambled(), keys, random_f32({100}), random_f32({}, 3)});
  }
  const double nan = std::nan("");
  const TestTensor keys(DType::kF32, {4}, {nan, -0.0, 1, 0}),
      x(DType::kF32, {4}, {0, nan, -0.0, 2});
  expect_as_reference("label_encode", {x, keys, random_f32({4}), random_f32({1}, 3)});
}

TEST(CpuLookup, UniqueOfMany) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kC64})
    for (bool sorted : {false, true}) {
      const TestTensor x = TestTensor(dtype, {40, 50}).fill(1, -30, 30);
      expect_as_reference("unique", {x}, {{"sorted", sorted}}, 0, 4);
      const TestTensor few = TestTensor(dtype, {6, 50, 2}).fill(1, 0, 1);
      expect_as_reference("unique", {few}, {{"sorted", sorted}, {"axes", Ints{1}}}, 0, 4);
    }
  const double nan = std::nan("");
  expect_as_reference("unique", {TestTensor(DType::kF32, {6}, {nan, 0, -0.0, nan, 1, -1})}, {}, 0,
                      4);
}

TEST(CpuLookup, TablesOfGroups) {
  const TestTensor x = TestTensor(DType::kU8, {60, 80}).fill(1, 0, 15);
  expect_as_reference("dequantize_lut", {x, random_f32({16})});
  expect_as_reference("dequantize_lut", {x.scrambled(), random_f32({6, 2, 16})});
  expect_as_reference("dequantize_lut", {x, random_f32({6, 2, 16, 3})}, {{"axis", 1}});
  TestInputs inputs = {TestTensor(DType::kU8, {2}, {0, 4}), random_f32({4})};
  const Prepared prepared = prepare_cpu("dequantize_lut", inputs);
  EXPECT_NE(error_of([&] { run(prepared, inputs); }), "");
}

}  // namespace
}  // namespace anymps::testing
