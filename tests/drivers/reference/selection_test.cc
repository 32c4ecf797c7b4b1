// SPDX-License-Identifier: Apache-2.0
// Results as long as the data say; numbers from NumPy.
#include "base/string_store.h"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(ReferenceSelection, Nonzero) {
  const TestTensor x(DType::kF32, {2, 3}, {1, 0, -2, 0, 0, NAN});
  const TestTensor y = run_reference("nonzero", {x});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.values(), (Row{0, 0, 1, 0, 2, 2}));
  EXPECT_EQ(run_reference("nonzero", {x}, {{"axes_first", false}}).values(),
            (Row{0, 0, 0, 2, 1, 2}));
  EXPECT_EQ(run_reference("nonzero", {TestTensor(DType::kBool, {2})}).shape(), (Shape{1, 0}));
  EXPECT_EQ(run_reference("nonzero", {TestTensor(DType::kI32, {}, {4})}).shape(), (Shape{0, 1}));
}

TEST(ReferenceSelection, Compress) {
  const TestTensor x(DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const auto condition = [](const Row& values) {
    return TestTensor(DType::kBool, {static_cast<int64_t>(values.size())}, values);
  };
  const NamedAttrs rows = {{"axes", std::vector<int64_t>{0}}};
  EXPECT_EQ(run_reference("compress", {x, condition({0, 1, 1})}, rows).values(), (Row{3, 4, 5, 6}));
  EXPECT_EQ(run_reference("compress", {x, condition({0, 1, 0, 0, 1})}).values(), (Row{2, 5}));
  EXPECT_EQ(error_of([&] {
              run_reference("compress", {x, condition({0, 0, 0, 1})}, rows);
            }),
            "[compress] condition is true at 3, the axis has the extent 3");
}

struct UniqueCase {
  NamedAttrs attrs;
  Row y, indices, inverse, counts;
};

TEST(ReferenceSelection, UniqueElements) {
  const TestTensor x(DType::kF32, {6}, {2, 1, 1, 3, 4, 3});
  const std::vector<UniqueCase> cases = {
      {{}, {1, 2, 3, 4}, {1, 0, 3, 4}, {1, 0, 0, 2, 3, 2}, {2, 1, 2, 1}},
      {{{"sorted", false}}, {2, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1}}};
  for (const UniqueCase& test : cases) {
    const auto results = run_reference_all("unique", {x}, test.attrs);
    EXPECT_EQ(results[0].values(), test.y);
    EXPECT_EQ(results[1].values(), test.indices);
    EXPECT_EQ(results[2].values(), test.inverse);
    EXPECT_EQ(results[3].values(), test.counts);
  }
}

TEST(ReferenceSelection, UniqueSlices) {
  const TestTensor rows(DType::kF32, {3, 3}, {2, 3, 4, 1, 0, 0, 1, 0, 0});
  const auto sorted = run_reference_all("unique", {rows}, {{"axes", std::vector<int64_t>{0}}});
  EXPECT_EQ(sorted[0].values(), (Row{1, 0, 0, 2, 3, 4}));
  EXPECT_EQ(sorted[1].values(), (Row{1, 0}));
  EXPECT_EQ(sorted[2].values(), (Row{1, 0, 0}));
  EXPECT_EQ(sorted[3].values(), (Row{2, 1}));
  const TestTensor columns(DType::kF32, {2, 4, 2},
                           {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1});
  const auto along = run_reference_all("unique", {columns}, {{"axes", std::vector<int64_t>{1}}});
  EXPECT_EQ(along[0].shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(along[0].values(), (Row{0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}));
  EXPECT_EQ(along[1].values(), (Row{1, 0, 2}));
  EXPECT_EQ(along[2].values(), (Row{1, 0, 2, 0}));
  EXPECT_EQ(along[3].values(), (Row{2, 1, 1}));
}

TEST(ReferenceSelection, UniqueNanIsOne) {
  const TestTensor x(DType::kF32, {4}, {NAN, 1, NAN, 0});
  const auto results = run_reference_all("unique", {x});
  ASSERT_EQ(results[0].shape(), (Shape{3}));
  EXPECT_EQ(results[0].values()[1], 1);
  EXPECT_TRUE(std::isnan(results[0].values()[2]));
  EXPECT_EQ(results[3].values(), (Row{1, 1, 2}));
}

TEST(ReferenceSelection, UniqueStrings) {
  StringStore store;
  TestTensor x(DType::kString, {4});
  const char* words[] = {"pear", "apple", "", "apple"};
  for (int i = 0; i < 4; ++i) x.data<Text>()[i] = store.add(words[i]);
  const auto results = run_reference_all("unique", {x});
  ASSERT_EQ(results[0].shape(), (Shape{3}));
  EXPECT_EQ(text_of(results[0].data<Text>()[0]), "");
  EXPECT_EQ(text_of(results[0].data<Text>()[1]), "apple");
  EXPECT_EQ(text_of(results[0].data<Text>()[2]), "pear");
  EXPECT_EQ(results[2].values(), (Row{2, 1, 0, 1}));
}

TEST(ReferenceSelection, UniqueConsecutive) {  // from PyTorch
  const auto runs =
      run_reference_all("unique_consecutive", {indices({8}, {1, 1, 2, 2, 3, 1, 1, 2})});
  EXPECT_EQ(runs[0].values(), (Row{1, 2, 3, 1, 2}));
  EXPECT_EQ(runs[1].values(), (Row{0, 2, 4, 5, 7}));
  EXPECT_EQ(runs[2].values(), (Row{0, 0, 1, 1, 2, 3, 3, 4}));
  EXPECT_EQ(runs[3].values(), (Row{2, 2, 1, 2, 1}));
  const auto rows = run_reference_all("unique_consecutive", {indices({3, 2}, {1, 2, 1, 2, 0, 0})},
                                      {{"axes", Ints{0}}});
  EXPECT_EQ(rows[0].values(), (Row{1, 2, 0, 0}));
  EXPECT_EQ(rows[2].values(), (Row{0, 0, 1}));
  EXPECT_EQ(rows[3].values(), (Row{2, 1}));
}

}  // namespace
}  // namespace anymps::testing
