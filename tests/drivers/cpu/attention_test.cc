// SPDX-License-Identifier: Apache-2.0
#include "against_reference.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::random_f32;
using testing::TestInputs;
using testing::TestTensor;

void compare_attention_samples(DType dtype) {
  const Op& op = get_op("sdpa");
  for (const Sample& sample : op.test.samples) {
    SCOPED_TRACE(sample.label);
    KernelCase test{"sdpa", "fused", inputs_of(op, sample, dtype), sample.attrs};
    if (sample.label == "no keys")
      EXPECT_EQ(testing::run_cpu_kernel(test).why, "no keys");
    else
      expect_same(test, op.test.tolerance.of(dtype));
  }
}

TEST(AttentionOnCpu, Samples) { compare_attention_samples(DType::kF32); }
TEST(AttentionOnCpu, SamplesInBf16) { compare_attention_samples(DType::kBF16); }
TEST(AttentionOnCpu, SamplesInF16) { compare_attention_samples(DType::kF16); }

struct AttentionCase {
  const char* label;
  TestInputs inputs;
  NamedAttrs attrs;
};

// Heads inside a tensor [B, S, H*D], as a transposed view of them.
TestTensor heads(const TestTensor& tensor) {
  const Shape& s = tensor.shape();
  return tensor.with_strides({s[1] * s[2] * s[3], s[3], s[1] * s[3], 1});
}

TEST(AttentionOnCpu, ManyBlocksOfKeysAndOddSizes) {
  const auto qkv = [](int64_t s, int64_t t, int64_t d, int64_t w) -> TestInputs {
    return {random_f32({2, 3, s, d}, 1), random_f32({2, 3, t, d}, 2), random_f32({2, 3, t, w}, 3)};
  };
  const auto masked = [&](TestInputs inputs, TestTensor mask) {
    inputs.emplace_back(std::move(mask));
    return inputs;
  };
  const TestTensor keep = TestTensor(DType::kBool, {2, 1, 1, 300}).fill(5);
  TestTensor none = TestTensor(DType::kBool, {131, 300}).fill(6);
  for (int64_t t = 0; t < 300; ++t) none.put({7, t}, 0);
  for (int64_t t = 0; t < 290; ++t) none.put({8, t}, 0);
  TestTensor low = random_f32({2, 3, 131, 300}, 7);
  low.fill(7, -3.4e38, -3.3e38);
  const std::vector<AttentionCase> cases = {
      {"three blocks of keys", qkv(131, 530, 64, 64), {}},
      {"odd depths", qkv(13, 257, 37, 21), {}},
      {"depth of one", qkv(9, 260, 1, 1), {}},
      {"causal", qkv(300, 300, 32, 32), {{"causal", true}}},
      {"causal, fewer keys", qkv(300, 140, 32, 32), {{"causal", true}}},
      {"negative scale", qkv(20, 270, 16, 16), {{"scale", -0.3}}},
      {"kept keys", masked(qkv(131, 300, 16, 16), keep), {}},
      {"a query without keys", masked(qkv(131, 300, 16, 16), none), {}},
      {"a mask of very low numbers", masked(qkv(131, 300, 16, 16), low), {}},
      {"a strided mask",
       masked(qkv(131, 300, 16, 16), spread(random_f32({2, 1, 131, 300}, 4))),
       {{"causal", true}}},
      {"heads of a joint tensor",
       {heads(random_f32({2, 4, 50, 24}, 1)), heads(random_f32({2, 4, 70, 24}, 2)),
        heads(random_f32({2, 4, 70, 24}, 3))},
       {}},
  };
  for (const AttentionCase& one : cases)
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} threads", one.label, threads));
      KernelCase test{"sdpa", "fused", one.inputs, one.attrs};
      test.threads = threads;
      expect_same(test, 2e-5);
    }
}

TEST(AttentionOnCpu, WritesHeadsOfAJointTensor) {
  KernelCase test{
      "sdpa",
      "fused",
      {random_f32({2, 4, 50, 24}, 1), random_f32({2, 4, 70, 24}, 2), random_f32({2, 4, 70, 24}, 3)},
      {}};
  test.out_strides = Strides{50 * 96, 24, 96, 1};
  expect_same(test, 2e-5);
}

TEST(AttentionOnCpu, NanStaysNan) {
  TestTensor q = random_f32({1, 1, 3, 8}, 1);
  q.put({0, 0, 1, 2}, std::nan(""));
  expect_same({"sdpa", "fused", {q, random_f32({1, 1, 5, 8}, 2), random_f32({1, 1, 5, 8}, 3)}, {}},
              2e-5);
}

TEST(AttentionOnCpu, RefusesRowsThatAreNotAdjacent) {
  KernelCase test{"sdpa",
                  "fused",
                  {spread(random_f32({1, 2, 3, 8}, 1)), random_f32({1, 2, 5, 8}, 2),
                   random_f32({1, 2, 5, 8}, 3)},
                  {}};
  EXPECT_EQ(testing::run_cpu_kernel(test).why, "the elements of a row of input 0 are not adjacent");
}

}  // namespace
}  // namespace anymps
