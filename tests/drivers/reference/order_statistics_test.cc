// SPDX-License-Identifier: Apache-2.0
// One element of each line; numbers from PyTorch.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kLines(DType::kF32, {2, 6}, {3, 1, 3, 2, 1, 0, 2, 2, 0, 0, 1, 5});
const TestTensor kNans(DType::kF32, {2, 5}, {3, kNan, 1, 2, kNan, kNan, kNan, kNan, kNan, kNan});

struct PickCase {
  const char* op;
  NamedAttrs attrs;
  const TestTensor* x;
  Row values, indices;
};

TEST(ReferenceOrderStatistics, Table) {
  const std::vector<PickCase> cases = {
      {"max_with_indices", {}, &kLines, {3, 5}, {0, 5}},
      {"max_with_indices", {}, &kNans, {kNan, kNan}, {1, 0}},
      {"min_with_indices", {}, &kLines, {0, 0}, {5, 2}},
      {"min_with_indices", {}, &kNans, {kNan, kNan}, {1, 0}},
      {"median", {}, &kLines, {1, 1}, {4, 4}},
      {"median", {}, &kNans, {kNan, kNan}, {1, 0}},
      {"median", {{"skip_nan", true}}, &kNans, {2, kNan}, {3, 0}},
      {"mode", {}, &kLines, {1, 0}, {4, 3}},
      {"mode", {}, &kNans, {1, kNan}, {2, 0}},
      {"kth_value", {{"k", 2}}, &kLines, {1, 0}, {1, 3}},
      {"kth_value", {{"k", 3}}, &kNans, {3, kNan}, {0, 2}},
  };
  for (const PickCase& test : cases) {
    const auto results = run_reference_all(test.op, {*test.x}, test.attrs);
    EXPECT_TRUE(same(results[0], TestTensor(DType::kF32, {2}, test.values))) << test.op;
    EXPECT_EQ(results[1].values(), test.indices) << test.op;
    EXPECT_EQ(results[1].dtype(), DType::kI64);
  }
}

TEST(ReferenceOrderStatistics, Axes) {
  const auto rows = run_reference_all("max_with_indices", {kLines}, {{"axis", 0}});
  EXPECT_EQ(rows[0].values(), (Row{3, 2, 3, 2, 1, 5}));
  EXPECT_EQ(rows[1].values(), (Row{0, 1, 0, 0, 0, 1}));
  const auto kept = run_reference_all("median", {kLines}, {{"keep_dims", true}});
  EXPECT_EQ(kept[0].shape(), (Shape{2, 1}));
  const auto flags =
      run_reference_all("max_with_indices", {TestTensor(DType::kBool, {3}, {0, 1, 1})});
  EXPECT_EQ(flags[0].values(), Row{1});
  EXPECT_EQ(flags[1].values(), Row{1});
}

TEST(ReferenceOrderStatistics, Errors) {
  EXPECT_EQ(error_of([] {
              run_reference_all("kth_value", {kLines}, {{"k", 7}});
            }),
            "[kth_value] k is 7, axis 1 has the extent 6");
  EXPECT_EQ(error_of([] {
              run_reference_all("median", {TestTensor(DType::kF32, {2, 0})});
            }),
            "[median] axis 1 of [2, 0] is empty: it has no element to give");
}

}  // namespace
}  // namespace anymps::testing
