// SPDX-License-Identifier: Apache-2.0
// Attention of doubles, in products.
#include <cstring>

#include "against_reference.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::spread;
using testing::TestInputs;
using testing::TestTensor;

constexpr double kSlack = 1e-11;

TestTensor random(Shape shape, uint64_t seed) {
  return TestTensor(DType::kF64, std::move(shape)).fill(seed);
}

TEST(TypedAttention, Samples) {
  for (const char* name : {"sdpa", "sdpa_gradient"}) {
    const Op& op = get_op(name);
    for (const Sample& sample : op.test.samples) {
      SCOPED_TRACE(fmt::format("{} {}", name, sample.label));
      KernelCase test{name, "typed", inputs_of(op, sample, DType::kF64), sample.attrs,
                      op.main_outputs()};
      bool nothing = false;
      for (const Shape& shape : sample.shapes)
        for (const int64_t extent : shape) nothing = nothing || extent == 0;
      if (nothing)
        EXPECT_EQ(testing::run_cpu_kernel(test).why, "nothing to multiply");
      else
        expect_same(test, kSlack);
    }
  }
}

// Several blocks of queries, the last of them cut, and heads one by one.
TEST(TypedAttention, ManyQueriesAndKeys) {
  for (const bool causal : {false, true}) {
    const NamedAttrs attrs{{"causal", causal}};
    const TestTensor q = random({2, 3, 300, 12}, 1), k = random({2, 3, 700, 12}, 2),
                     v = random({2, 3, 700, 7}, 3), dy = random({2, 3, 300, 7}, 4);
    expect_same({"sdpa", "typed", {q, k, v}, attrs, 2}, kSlack);
    expect_same({"sdpa", "typed", {spread(q), k.scrambled(), spread(v)}, attrs, 2}, kSlack);
    const TestTensor y = testing::run_reference("sdpa", {q, k, v}, attrs);
    expect_same({"sdpa_gradient", "typed", {dy, q, k, v, y}, attrs, 3}, kSlack);
    expect_same({"sdpa_gradient", "typed", {dy, q, k, v, y}, attrs, 1}, kSlack);
  }
  const TestTensor q = random({1, 2, 400, 3}, 1), one = random({1, 2, 1, 3}, 2);
  expect_same({"sdpa", "typed", {q, one, one}, {}}, kSlack);
  expect_same({"sdpa_gradient", "typed", {q, q, one, one, q}, {}, 3}, kSlack);
}

// Masks of three types; a query that keeps no key, and one that keeps few.
TEST(TypedAttention, Masks) {
  const TestTensor q = random({2, 2, 20, 8}, 1), k = random({2, 2, 30, 8}, 2),
                   v = random({2, 2, 30, 8}, 3);
  TestTensor keep = TestTensor(DType::kBool, {20, 30}).fill(4);
  for (int64_t t = 0; t < 30; ++t) keep.put({7, t}, 0);
  for (int64_t t = 0; t < 29; ++t) keep.put({8, t}, 0);
  TestTensor added = random({2, 1, 1, 30}, 5), single = TestTensor(DType::kF32, {20, 30}).fill(6);
  added.put({0, 0, 0, 3}, -INFINITY);
  for (const TestTensor& mask : {keep, added, single}) {
    expect_same({"sdpa", "typed", {q, k, v, mask}, {}, 2}, kSlack);
    const TestTensor y = testing::run_reference("sdpa", {q, k, v, mask});
    expect_same({"sdpa_gradient", "typed", {y, q, k, v, y, std::nullopt, mask}, {}, 3}, kSlack);
  }
}

TEST(TypedAttention, DoesNotDependOnThreads) {
  const TestInputs inputs{random({2, 3, 90, 16}, 1), random({2, 3, 500, 16}, 2),
                          random({2, 3, 500, 16}, 3)};
  std::vector<TestTensor> results;
  for (const int threads : {1, 2, 3}) {
    KernelCase test{"sdpa", "typed", inputs, {}};
    test.threads = threads;
    results.push_back(testing::run_cpu_kernel(test).outputs.at(0));
    EXPECT_EQ(std::memcmp(results[0].ptr(), results.back().ptr(), results[0].desc().bytes()), 0)
        << threads << " threads";
  }
}

}  // namespace
}  // namespace anymps
