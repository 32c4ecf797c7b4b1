// SPDX-License-Identifier: Apache-2.0
// Reductions of segments, with the results and gradients of torch.segment_reduce.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

struct SegmentCase {
  const char* mode;
  bool has_initial;
  Row y, dx;
};

void expect_same_numbers(const Row& got, const Row& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i]))
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i]) << i;
    else
      EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
  }
}

TEST(TorchSegments, Lengths) {
  const TestTensor x = f64({6, 2}, {1, 2, 3, -1, 0, 5, kNan, 4, 2, 2, 2, 0}),
                   dy = f64({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const SegmentCase kCases[] = {
      {"sum", false, {4, 1, 0, 0, kNan, 11, 2, 0}, {1, 2, 1, 2, 5, 6, 5, 6, 5, 6, 7, 8}},
      {"sum", true, {14, 11, 10, 10, kNan, 21, 12, 10}, {1, 2, 1, 2, 5, 6, 5, 6, 5, 6, 7, 8}},
      {"mean",
       false,
       {2, 0.5, kNan, kNan, kNan, 11.0 / 3, 2, 0},
       {0.5, 1, 0.5, 1, 5.0 / 3, 2, 5.0 / 3, 2, 5.0 / 3, 2, 7, 8}},
      {"mean",
       true,
       {7, 5.5, 10, 10, kNan, 7, 12, 10},
       {0.5, 1, 0.5, 1, 5.0 / 3, 2, 5.0 / 3, 2, 5.0 / 3, 2, 7, 8}},
      {"max", false, {3, 2, -kInf, -kInf, kNan, 5, 2, 0}, {0, 2, 1, 0, 0, 6, 5, 0, 0, 0, 7, 8}},
      {"max", true, {10, 10, 10, 10, kNan, 10, 10, 10}, {0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0}},
      {"min", false, {1, -1, kInf, kInf, kNan, 2, 2, 0}, {1, 0, 0, 2, 0, 0, 5, 0, 0, 6, 7, 8}},
      {"prod",
       false,
       {3, -2, 1, 1, kNan, 40, 2, 0},
       {3, -2, 1, 4, kNan, 48, 0, 60, kNan, 120, 7, 8}},
      {"prod",
       true,
       {30, -20, 10, 10, kNan, 400, 20, 0},
       {30, -20, 10, 40, kNan, 480, 0, 600, kNan, 1200, 70, 80}}};
  for (const SegmentCase& c : kCases) {
    SCOPED_TRACE(fmt::format("{} {}", c.mode, c.has_initial));
    const NamedAttrs attrs{{"mode", c.mode}, {"has_initial", c.has_initial}, {"initial", 10.0}};
    const TestTensor lengths = indices({4}, {2, 0, 3, 1});
    const TestTensor y = run_reference("segment_reduce", {x.scrambled(), lengths}, attrs);
    expect_same_numbers(y.values(), c.y);
    expect_same_numbers(
        run_reference("segment_reduce_gradient", {dy, y, x, lengths}, attrs).values(), c.dx);
  }
}

TEST(TorchSegments, OffsetsOfEachRow) {
  const TestTensor x = f64({2, 4}, {3, 3, 1, 2, 0, 2, 0, 4}), ones = f64({2, 2}, {1, 1, 1, 1}),
                   offsets = indices({2, 3}, {0, 2, 4, 0, 3, 4});
  const TestTensor y =
      run_reference("segment_reduce", {x, std::nullopt, offsets}, {{"mode", "max"}});
  EXPECT_EQ(y.values(), (Row{3, 2, 2, 4}));
  EXPECT_EQ(run_reference("segment_reduce_gradient", {ones, y, x, std::nullopt, offsets},
                          {{"mode", "max"}})
                .values(),
            (Row{0.5, 0.5, 0, 1, 0, 1, 0, 1}));
}

TEST(TorchSegments, SaysWhatIsWrong) {
  const TestTensor x = f64({4}, {1, 2, 3, 4});
  EXPECT_EQ(error_of([&] {
              run_reference("segment_reduce", {x, indices({2}, {1, 2})});
            }),
            "[segment_reduce] the lengths add up to 3, must be 4");
  EXPECT_EQ(error_of([&] {
              run_reference("segment_reduce", {x, indices({2}, {5, -1})});
            }),
            "[segment_reduce] segment 0 is not inside the axis of 4 elements");
  EXPECT_EQ(error_of([&] {
              run_reference("segment_reduce", {x, std::nullopt, indices({3}, {0, 3, 2})});
            }),
            "[segment_reduce] segment 1 is not inside the axis of 4 elements");
}

}  // namespace
}  // namespace anymps::testing
