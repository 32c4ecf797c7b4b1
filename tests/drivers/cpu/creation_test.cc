// SPDX-License-Identifier: Apache-2.0
// Kernels that make tensors against the reference.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuCreation, Samples) {
  for (const char* op : {"eye_like"}) EXPECT_GE(expect_samples_as_reference(op, kAny), 4) << op;
}

TEST(CpuCreation, OneHot) {
  for (DType index : {DType::kI32, DType::kI64})
    for (int axis : {0, 1, -1})
      expect_as_reference(
          "one_hot",
          {TestTensor(index, {30, 20}).fill(1, -60, 60), TestTensor(DType::kI64, {}, {40}),
           TestTensor(DType::kF32, {2}, {-1, 2})},
          {{"axis", axis}});
}

// Long enough for several threads.
TEST(CpuCreation, LongRanges) {
  const auto one = [](DType dtype, double value) { return TestTensor(dtype, {}, {value}); };
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kF32, DType::kF64})
    for (const double delta : {1.0, 3.0, -7.0})
      expect_as_reference(
          "range", {one(dtype, 5), one(dtype, 5 + 100003 * delta), one(dtype, delta)}, {}, 1e-6);
  expect_as_reference("range",
                      {one(DType::kI16, -20000), one(DType::kI16, 20000), one(DType::kI16, 1)});
}

}  // namespace
}  // namespace anymps::testing
