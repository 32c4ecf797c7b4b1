// SPDX-License-Identifier: Apache-2.0
// Kernels of training against the reference where the generated samples do not reach: parameters in
// a half type, large tensors, results that nobody asks for.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TestTensor of_dtype(DType dtype, Shape shape, uint64_t seed, double low = -1, double high = 1) {
  return TestTensor(dtype, std::move(shape)).fill(seed, low, high);
}

TEST(CpuTraining, NormsInOneType) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    const double tolerance = is_half(dtype) ? 2e-2 : 2e-4;
    const auto make = [&](Shape shape, uint64_t seed, double low = -1) {
      return of_dtype(dtype, std::move(shape), seed, low);
    };
    for (const char* layout : {"channels_first", "channels_last"}) {
      const Shape x{6, 40, 21, 40};
      expect_as_reference(
          "batch_norm_training",
          {make(x, 1), make({40}, 2), make({40}, 3), make({40}, 4), make({40}, 5, 0.5)},
          {{"layout", layout}}, tolerance, 5);
      expect_as_reference(
          "batch_norm_training_gradient",
          {make(x, 1), make(x, 2), make({40}, 3), make({40}, 4, 0.5), make({40}, 5)},
          {{"layout", layout}}, 10 * tolerance, 3);
    }
    expect_as_reference("layer_norm_gradient",
                        {make({150, 70}, 1), make({150, 70}, 2), make({150, 1}, 3),
                         make({150, 1}, 4, 0.5), make({70}, 5)},
                        {}, 10 * tolerance, 3);
    expect_as_reference("group_norm_gradient",
                        {make({3, 8, 300}, 1), make({3, 8, 300}, 2), make({3, 2}, 3),
                         make({3, 2}, 4, 0.5), make({8}, 5)},
                        {{"groups", 2}}, 10 * tolerance, 3);
  }
}

// The numbers are far from 0 beside their differences.
TEST(CpuTraining, StatisticsOfLargeNumbersDoNotCancel) {
  for (const char* layout : {"channels_first", "channels_last"})
    expect_as_reference("batch_norm_training", {random_f32({8, 20, 30, 20}, 1, 9999, 10001)},
                        {{"layout", layout}, {"epsilon", 0.0}}, 2e-3, 3);
}

TEST(CpuTraining, LossesOverImages) {
  const TestTensor x = random_f32({2, 19, 30, 31}, 1, -20, 20),
                   weight = random_f32({19}, 2, 0.1, 1);
  TestTensor target = TestTensor(DType::kI32, {2, 30, 31}).fill(3, 0, 18);
  target.put({1, 3, 4}, -100);
  for (const double smoothing : {0.0, 0.1}) {
    const NamedAttrs attrs = {{"label_smoothing", smoothing}};
    expect_as_reference("cross_entropy", {x, target, weight}, attrs, 1e-5, 2);
    expect_as_reference("cross_entropy_gradient",
                        {random_f32({}, 4), x, target, weight, random_f32({}, 5, 1, 2)}, attrs,
                        1e-5);
  }
}

TEST(CpuTraining, StepsWithoutTheirStates) {
  const TestTensor x = random_f32({3000}, 1), g = random_f32({3000}, 2), rate = random_f32({}, 3);
  expect_as_reference("sgd_step", {x, g, rate}, {{"momentum", 0.9}, {"nesterov", true}}, 1e-5);
  expect_as_reference("sgd_step", {x, g, rate, random_f32({3000}, 4)}, {{"momentum", 0.9}}, 1e-5);
  const TestTensor low = of_dtype(DType::kBF16, {3000}, 5),
                   slope = of_dtype(DType::kBF16, {3000}, 6);
  for (const double found : {0.0, 1.0})
    expect_as_reference(
        "adam_step",
        {low, slope, rate, f32({}, {3}), random_f32({3000}, 7), random_f32({3000}, 8, 0.1, 1),
         std::nullopt, x, f32({}, {8}), f32({}, {found})},
        {{"weight_decay", 0.1}}, 2e-3, 5);
}

TEST(CpuTraining, AttentionGradient) {
  for (const DType dtype : {DType::kF32, DType::kBF16})
    for (const bool causal : {false, true}) {
      const Shape queries{2, 3, 100, 24}, keys{2, 3, 270, 24};
      const TestTensor q = of_dtype(dtype, queries, 1), k = of_dtype(dtype, keys, 2),
                       v = of_dtype(dtype, keys, 3), dy = of_dtype(dtype, queries, 4);
      const TestTensor y = run_reference("sdpa", {q, k, v}, {{"causal", causal}});
      expect_as_reference("sdpa_gradient", {dy, q, k, v, y}, {{"causal", causal}},
                          dtype == DType::kF32 ? 1e-4 : 2e-2, 3);
      TestTensor keep = TestTensor(DType::kBool, {2, 1, 100, 270}).fill(5);
      expect_as_reference("sdpa_gradient", {dy, q, k, v, y, std::nullopt, keep},
                          {{"causal", causal}}, dtype == DType::kF32 ? 1e-4 : 2e-2, 3);
    }
}

}  // namespace
}  // namespace anymps::testing
