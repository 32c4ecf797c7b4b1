// SPDX-License-Identifier: Apache-2.0
// softmax and normalization against the reference.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuSoftmax, Samples) {
  for (const char* op : {"softmax", "log_softmax"})
    EXPECT_GE(expect_samples_as_reference(op, kFloat), 60);
}

TEST(CpuSoftmax, Edges) {
  const std::vector<double> values = {kInf,  1,    -kInf, -kInf, -kInf, -kInf, kNan,
                                      1,     2,    1,     kNan,  2,     -kInf, 0,
                                      -1e30, 1e30, 0,     1,     3e38,  3e38,  -3e38};
  for (const char* op : {"softmax", "log_softmax"})
    for (int axis : {0, 1})
      expect_as_reference(op, {TestTensor(DType::kF32, {7, 3}, values)}, {{"axis", axis}}, 1e-6);
}

TEST(CpuSoftmax, ManyColumns) {
  for (DType dtype : {DType::kF32, DType::kF16})
    expect_as_reference("softmax", {TestTensor(dtype, {2, 9, 700}).fill(1, -20, 20)}, {{"axis", 1}},
                        2e-3);
}

// Few lines side by side, such as the heads of attention, around the border to many.
TEST(CpuSoftmax, FewColumns) {
  for (const char* op : {"softmax", "log_softmax"})
    for (DType dtype : {DType::kF32, DType::kF16})
      for (const int64_t length : {50, 1500})
        for (const int64_t columns : {1, 4, 31, 32})
          expect_as_reference(op, {TestTensor(dtype, {3, length, columns}).fill(1, -20, 20)},
                              {{"axis", 1}}, dtype == DType::kF32 ? 2e-5 : 4e-3);
}

// Several go through the exponential together, so the number of threads decides which.
TEST(CpuSoftmax, ShortLines) {
  for (const char* op : {"softmax", "log_softmax"})
    for (const int64_t length : {1, 2, 3, 10, 16, 31, 32, 33}) {
      TestInputs inputs = {TestTensor(DType::kF32, {3000, length}).fill(length, -20, 20)};
      expect_as_reference(op, inputs, {}, 1e-6);
      const Prepared prepared = prepare_cpu(op, inputs);
      get_driver("cpu").use_threads(1);
      const TestTensor one = run(prepared, inputs)[0];
      get_driver("cpu").use_threads(2);
      EXPECT_TRUE(same(run(prepared, inputs)[0], one)) << op << " " << length;
      ASSERT_TRUE(prepared.kernel->in_place(0, 0));
      void* x = inputs[0]->ptr();
      prepared.kernel->run({&x, &x, nullptr, nullptr});
      EXPECT_TRUE(same(*inputs[0], one)) << op << " " << length;
    }
}

TEST(CpuSoftmax, InPlaceAndThreads) {
  TestInputs inputs = {TestTensor(DType::kF32, {500, 300}).fill(1, -9, 9)};
  const Prepared prepared = prepare_cpu("softmax", inputs);
  get_driver("cpu").use_threads(1);
  const TestTensor one = run(prepared, inputs)[0];
  get_driver("cpu").use_threads(2);
  EXPECT_TRUE(same(run(prepared, inputs)[0], one));
  ASSERT_TRUE(prepared.kernel->in_place(0, 0));
  void* x = inputs[0]->ptr();
  prepared.kernel->run({&x, &x, nullptr, nullptr});
  EXPECT_TRUE(same(*inputs[0], one));
}

TEST(CpuNormalization, Samples) {
  for (const char* op : {"layer_norm", "rms_norm", "group_norm", "instance_norm"})
    EXPECT_GE(expect_samples_as_reference(op, kFloat), 9) << op;
  EXPECT_GE(expect_samples_as_reference("batch_norm", kFloat), 60);
}

TEST(CpuNormalization, LongRowsAndLargeMeans) {
  const TestTensor x = TestTensor(DType::kF32, {3, 5000}).fill(1, 1000, 1001);
  expect_as_reference("layer_norm", {x}, {}, 2e-3);
  expect_as_reference("layer_norm", {TestTensor(DType::kF16, {3, 5000}).fill(1)}, {}, 4e-3);
  const TestTensor image = TestTensor(DType::kF32, {2, 6, 40, 40}).fill(1);
  expect_as_reference(
      "group_norm",
      {image, TestTensor(DType::kF32, {6}).fill(2), TestTensor(DType::kF32, {6}).fill(3)},
      {{"groups", 3}}, 2e-5);
}

}  // namespace
}  // namespace anymps::testing
