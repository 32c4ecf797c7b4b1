// SPDX-License-Identifier: Apache-2.0
// What bools do where numbers are expected: PyTorch's truth tables.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(ReferenceBools, Arithmetic) {
  const auto bools = [](const Row& values) { return TestTensor(DType::kBool, {4}, values); };
  const TestTensor a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  const std::pair<const char*, Row> cases[] = {
      {"add", {0, 1, 1, 1}},        {"mul", {0, 0, 0, 1}},           {"max", {0, 1, 1, 1}},
      {"min", {0, 0, 0, 1}},        {"less", {0, 1, 0, 0}},          {"less_equal", {1, 1, 0, 1}},
      {"greater", {0, 0, 1, 0}},    {"greater_equal", {1, 0, 1, 1}}, {"bitwise_and", {0, 0, 0, 1}},
      {"bitwise_or", {0, 1, 1, 1}}, {"bitwise_xor", {0, 1, 1, 0}},
  };
  for (const auto& [op, expected] : cases)
    EXPECT_TRUE(same(run_reference(op, {a, b}), bools(expected))) << op;
  EXPECT_TRUE(same(run_reference("bitwise_not", {a}), bools({1, 1, 0, 0})));
}

}  // namespace
}  // namespace anymps::testing
