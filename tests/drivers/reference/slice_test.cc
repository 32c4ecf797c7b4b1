// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kSix(DType::kF32, {6}, {0, 1, 2, 3, 4, 5});
const TestTensor kFour(DType::kF32, {4}, {1, 2, 3, 4});

Row sliced(int64_t start, int64_t end, int64_t step) {
  return run_reference("slice", {kSix},
                       {{"starts", Ints{start}}, {"ends", Ints{end}}, {"steps", Ints{step}}})
      .values();
}

TEST(ReferenceSlice, AsInNumpy) {
  EXPECT_EQ(sliced(1, 4, 1), (Row{1, 2, 3}));
  EXPECT_EQ(sliced(-2, 100, 1), (Row{4, 5}));
  EXPECT_EQ(sliced(0, 6, 4), (Row{0, 4}));
  EXPECT_EQ(sliced(5, 0, -2), (Row{5, 3, 1}));
  EXPECT_EQ(sliced(-1, -100, -1), (Row{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(sliced(100, -3, -1), (Row{5, 4}));
  EXPECT_EQ(sliced(4, 4, 1), Row{});
  EXPECT_EQ(sliced(2, 6, INT64_MAX), (Row{2}));
  EXPECT_EQ(sliced(2, INT64_MIN, -INT64_MAX), (Row{2}));
}

TEST(ReferenceSlice, InputsNameAxes) {
  const TestTensor x(DType::kI16, {2, 3}, {0, 1, 2, 3, 4, 5});
  const auto one = [](int64_t value) { return TestTensor::of<int64_t>({1}, {value}); };
  EXPECT_EQ(run_reference("slice", {x, one(1), one(3), one(-1)}).values(), (Row{1, 2, 4, 5}));
}

TEST(ReferenceSlice, Split) {
  const auto parts = run_reference_all("split", {kSix}, {{"sizes", Ints{1, 0, 5}}}, 3);
  EXPECT_EQ(parts[0].values(), (Row{0}));
  EXPECT_EQ(parts[1].values(), Row{});
  EXPECT_EQ(parts[2].values(), (Row{1, 2, 3, 4, 5}));
  const auto equal = run_reference_all("split", {kSix}, {}, 4);
  EXPECT_EQ(equal[1].values(), (Row{2, 3}));
  EXPECT_EQ(equal[3].values(), Row{});
}

TEST(ReferenceSlice, ListsAsInputs) {
  const TestTensor x(DType::kF32, {2, 2}, {1, 2, 3, 4});
  const auto list = [](std::vector<int64_t> values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  };
  EXPECT_EQ(run_reference("pad", {x, list({1, 0}), std::nullopt, list({-1})}).values(),
            (Row{0, 1, 2, 0, 3, 4}));
  EXPECT_EQ(run_reference("trilu", {x, TestTensor::of<int64_t>({}, {1})}).values(),
            (Row{0, 2, 0, 0}));
  const auto parts = run_reference_all("split", {kSix, list({2, 4})}, {}, 2);
  EXPECT_EQ(parts[1].values(), (Row{2, 3, 4, 5}));
}

TEST(ReferenceSlice, Reverse) {
  const TestTensor x(DType::kF16, {2, 2}, {0, 1, 2, 3});
  EXPECT_EQ(run_reference("reverse", {x}).values(), (Row{3, 2, 1, 0}));
  EXPECT_EQ(run_reference("reverse", {x}, {{"axes", Ints{1}}}).values(), (Row{1, 0, 3, 2}));
}

Row padded(const char* mode, int64_t begin, int64_t end) {
  return run_reference("pad", {kFour}, {{"pads", Ints{begin, end}}, {"mode", mode}, {"value", 9.0}})
      .values();
}

TEST(ReferenceSlice, PadModes) {
  EXPECT_EQ(padded("constant", 2, 1), (Row{9, 9, 1, 2, 3, 4, 9}));
  EXPECT_EQ(padded("reflect", 3, 2), (Row{4, 3, 2, 1, 2, 3, 4, 3, 2}));
  EXPECT_EQ(padded("symmetric", 4, 2), (Row{4, 3, 2, 1, 1, 2, 3, 4, 4, 3}));
  EXPECT_EQ(padded("edge", 1, 3), (Row{1, 1, 2, 3, 4, 4, 4, 4}));
  EXPECT_EQ(padded("wrap", 5, 1), (Row{4, 1, 2, 3, 4, 1, 2, 3, 4, 1}));
  EXPECT_EQ(padded("constant", -1, -2), (Row{2}));
  EXPECT_EQ(padded("constant", -3, 2), (Row{4, 9, 9}));
  EXPECT_EQ(padded("edge", -4, 2), (Row{4, 4}));
}

TEST(ReferenceSlice, PadValueInput) {
  const TestTensor value(DType::kI8, {}, {-7});
  const TestTensor x(DType::kI8, {2}, {1, 2});
  EXPECT_EQ(run_reference("pad", {x, TestTensor::of<int64_t>({2}, {1, 0}), value}).values(),
            (Row{-7, 1, 2}));
}

TEST(ReferenceSlice, Trilu) {
  const TestTensor x(DType::kI32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_reference("trilu", {x}).values(), (Row{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(run_reference("trilu", {x}, {{"upper", false}}).values(), (Row{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(run_reference("trilu", {x}, {{"k", 1}}).values(), (Row{0, 2, 3, 0, 0, 6}));
  EXPECT_EQ(run_reference("trilu", {x}, {{"k", -1}, {"upper", false}}).values(),
            (Row{0, 0, 0, 4, 0, 0}));
}

}  // namespace
}  // namespace anymps::testing
