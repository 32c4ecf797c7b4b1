// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kA(DType::kF32, {2, 2}, {1, 2, 3, 4});
const TestTensor kB(DType::kF32, {2, 1}, {5, 6});

TEST(ReferenceJoin, Concat) {
  EXPECT_EQ(run_reference("concat", {kA, kB}, {{"axis", 1}}).values(), (Row{1, 2, 5, 3, 4, 6}));
  EXPECT_EQ(run_reference("concat", {kA, kA}).values(), (Row{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(run_reference("concat", {kA, TestTensor(DType::kF32, {2, 0})}, {{"axis", 1}}).values(),
            (Row{1, 2, 3, 4}));
}

TEST(ReferenceJoin, Stack) {
  EXPECT_EQ(run_reference("stack", {kA, kA.scrambled()}, {{"axis", -1}}).values(),
            (Row{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(run_reference("stack", {kA, kA}, {{"axis", 1}}).values(),
            (Row{1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST(ReferenceJoin, Tile) {
  EXPECT_EQ(run_reference("tile", {kB}, {{"repeats", Ints{2, 2}}}).values(),
            (Row{5, 5, 6, 6, 5, 5, 6, 6}));
  EXPECT_EQ(run_reference("tile", {kB}, {{"repeats", Ints{0, 2}}}).values(), Row{});
}

}  // namespace
}  // namespace anymps::testing
