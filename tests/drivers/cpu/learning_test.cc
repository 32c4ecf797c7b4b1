// SPDX-License-Identifier: Apache-2.0
// Kernels of losses, labels and optimizers against the reference.
#include <cmath>

#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuOptimizer, Samples) {
  for (const char* op : {"adam"}) EXPECT_GE(expect_samples_as_reference(op, kSomeDTypes), 5) << op;
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

TEST(CpuLabelEncode, ManyKeys) {
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

}  // namespace
}  // namespace anymps::testing
