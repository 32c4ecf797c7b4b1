// SPDX-License-Identifier: Apache-2.0
#include "against_reference.h"
#include "drivers/cpu/isa.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::random_f32;
using testing::TestInputs;
using testing::TestTensor;

void compare_matmul_samples(DType dtype, std::vector<size_t> constant) {
  const Op& op = get_op("matmul");
  for (const Sample& sample : op.test.samples) {
    SCOPED_TRACE(sample.label);
    KernelCase test{"matmul", "onednn", inputs_of(op, sample, dtype), sample.attrs, 1, constant};
    const auto result = testing::run_cpu_kernel(test);
    if (sample.label == "no inner") {
      EXPECT_EQ(result.why, "nothing to sum over");
      continue;
    }
    expect_same(test, op.test.tolerance.of(dtype));
  }
}

TEST(MatmulOnCpu, Samples) { compare_matmul_samples(DType::kF32, {}); }
TEST(MatmulOnCpu, SamplesWithPackedWeights) { compare_matmul_samples(DType::kF32, {1, 2}); }
TEST(MatmulOnCpu, SamplesInBf16) { compare_matmul_samples(DType::kBF16, {1}); }
TEST(MatmulOnCpu, SamplesInF16) { compare_matmul_samples(DType::kF16, {1}); }

struct MatmulCase {
  const char* label;
  TestInputs inputs;
  NamedAttrs attrs;
  std::vector<size_t> constant;
};

TEST(MatmulOnCpu, CasesBesideTheSamples) {
  const std::vector<MatmulCase> cases = {
      {"linear layer",
       {random_f32({2, 9, 32}, 1), random_f32({32, 48}, 2), random_f32({48}, 3)},
       {},
       {1, 2}},
      {"linear layer, transposed weights",
       {random_f32({2, 9, 32}, 1), random_f32({48, 32}, 2), random_f32({48}, 3)},
       {{"transpose_b", true}},
       {1}},
      {"scale and bias",
       {random_f32({6, 16}, 1), random_f32({16, 20}, 2), random_f32({20}, 3)},
       {{"alpha", 0.125}},
       {1}},
      {"scale, bias, residual, gelu",
       {random_f32({2, 6, 16}, 1), random_f32({16, 20}, 2), random_f32({20}, 3),
        random_f32({2, 6, 20}, 4)},
       {{"alpha", 0.5}, {"activation", "gelu"}},
       {1}},
      {"gelu_tanh",
       {random_f32({6, 16}, 1), random_f32({16, 20}, 2)},
       {{"activation", "gelu_tanh"}},
       {1}},
      {"silu", {random_f32({6, 16}, 1), random_f32({16, 20}, 2)}, {{"activation", "silu"}}, {1}},
      {"tanh", {random_f32({6, 16}, 1), random_f32({16, 20}, 2)}, {{"activation", "tanh"}}, {1}},
      {"vector with bias",
       {random_f32({16}, 1), random_f32({16, 20}, 2), random_f32({20}, 3)},
       {},
       {1}},
      {"batch vector with bias",
       {random_f32({3, 5, 7}, 1), random_f32({7}, 2), random_f32({5}, 3)},
       {},
       {}},
      {"batch with batch bias",
       {random_f32({3, 5, 7}, 1), random_f32({3, 7, 4}, 2), random_f32({3, 1, 4}, 3)},
       {},
       {}},
      {"constant batch", {random_f32({3, 5, 7}, 1), random_f32({3, 7, 4}, 2)}, {}, {1}},
      {"one row each",
       {random_f32({8, 1, 16}, 1), random_f32({16, 24}, 2), random_f32({24}, 3),
        random_f32({8, 1, 24}, 4)},
       {},
       {1}},
      {"attention scores",
       {random_f32({2, 12, 4, 16}, 1).with_strides({12 * 4 * 16, 16, 192, 1}),
        random_f32({2, 12, 16, 4}, 2).with_strides({12 * 4 * 16, 16, 1, 192})},
       {{"alpha", 0.25}},
       {}},
      {"heads in three axes",
       {random_f32({12, 4, 16}, 1).with_strides({16, 192, 1}),
        random_f32({12, 16, 4}, 2).with_strides({16, 1, 192})},
       {},
       {}},
      {"heads of a joint tensor",
       {random_f32({1, 12, 4, 16}, 1).with_strides({2304, 16, 576, 1}),
        random_f32({1, 12, 16, 4}, 2).with_strides({2304, 16, 1, 576})},
       {},
       {}},
  };
  for (const MatmulCase& one : cases) {
    SCOPED_TRACE(one.label);
    expect_same({"matmul", "onednn", one.inputs, one.attrs, 1, one.constant}, 5e-5);
  }
}

TEST(MatmulOnCpu, WritesAStridedResult) {
  KernelCase test{
      "matmul", "onednn", {random_f32({2, 3, 5, 7}, 1), random_f32({2, 3, 7, 4}, 2)}, {}};
  test.out_strides = Strides{60, 4, 12, 1};
  expect_same(test, 5e-5);
}

TEST(MatmulOnCpu, PacksWeightsThatAllBatchesShare) {
  if (cpu::isa() < cpu::Isa::kAvx512) GTEST_SKIP() << "oneDNN reads them as they are there";
  KernelCase test{"matmul", "onednn", {random_f32({2, 9, 64}, 1), random_f32({64, 96}, 2)},
                  {},       1,        {1}};
  const auto result = testing::run_cpu_kernel(test);
  ASSERT_TRUE(result.kernel) << result.why;
  EXPECT_FALSE(result.kernel->reads(1));
}

TEST(MatmulOnCpu, RefusesWhatItCannotDo) {
  KernelCase backwards{
      "matmul", "onednn", {random_f32({4, 6}, 1).scrambled(), random_f32({6, 5}, 2)}, {}};
  EXPECT_NE(testing::run_cpu_kernel(backwards).why.find("are not positive"), std::string::npos);
  KernelCase wide{
      "matmul", "onednn", {TestTensor(DType::kF64, {4, 6}), TestTensor(DType::kF64, {6, 5})}, {}};
  EXPECT_EQ(testing::run_cpu_kernel(wide).why, "dtype f64");
}

}  // namespace
}  // namespace anymps
