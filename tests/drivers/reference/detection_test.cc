// SPDX-License-Identifier: Apache-2.0
// Expected numbers are those of ONNX's reference evaluator, and by hand.
#include <algorithm>
#include <cmath>

#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::same;
using testing::TestTensor;

const TestTensor& boxes() {
  static const TestTensor tensor(DType::kF32, {1, 6, 4},
                                 {0, 0,  1, 1,  0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                                  0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100,  1, 101});
  return tensor;
}

// Runs the op as the runtime does: measures the shape first.
std::vector<double> kept(const TestTensor& boxes, const TestTensor& scores, int64_t most, float iou,
                         std::optional<float> score) {
  const Op& op = get_op("non_max_suppression");
  const Attrs attrs(op, {});
  TestTensor inputs[] = {boxes, scores, TestTensor(DType::kI64, {}, {double(most)}),
                         TestTensor(DType::kF32, {}, {iou}),
                         TestTensor(DType::kF32, {}, {score.value_or(0)})};
  KernelRequest request;
  request.op = &op;
  request.attrs = attrs;
  std::vector<MeasureInput> measured;
  std::vector<void*> in;
  for (TestTensor& input : inputs) {
    const bool absent = &input == &inputs[4] && !score;
    measured.push_back({input.desc(), absent ? nullptr : input.ptr()});
    request.inputs.push_back(absent ? std::nullopt : std::optional(input.desc()));
    in.push_back(absent ? nullptr : input.ptr());
  }
  request.contents.resize(5);
  TestTensor result(DType::kI64, op.measure({op, attrs, measured}).at(0));
  request.outputs = {result.desc()};
  void* out = result.ptr();
  make_reference_kernel(request)->run({in.data(), &out, nullptr, nullptr});
  EXPECT_TRUE(result.guards_intact());
  return result.values();
}

TEST(ReferenceNonMaxSuppression, ByOverlapScoreAndNumber) {
  const TestTensor scores(DType::kF32, {1, 1, 6}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.3});
  using Values = std::vector<double>;
  EXPECT_EQ(kept(boxes(), scores, 3, 0.5f, 0.0f), (Values{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(kept(boxes(), scores, 9, 0.5f, 0.4f), (Values{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(kept(boxes(), scores, 2, 0.5f, std::nullopt), (Values{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(kept(boxes(), scores, 0, 0.5f, std::nullopt), Values{});
  EXPECT_EQ(kept(boxes(), TestTensor(DType::kF32, {1, 0, 6}), 3, 0.5f, 0.0f), Values{});
}

// Against a selection that sorts all boxes and compares each with each: many boxes, equal scores.
TEST(ReferenceNonMaxSuppression, ManyBoxesInOrder) {
  constexpr int64_t kCount = 400;
  TestTensor many = testing::random_f32({1, kCount, 4}, 1, 0, 10);
  TestTensor scores = testing::random_f32({1, 1, kCount}, 2, 0, 1);
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t k : {2, 3})
      many.put({0, i, k}, many.get({0, i, k - 2}).real() + 1 + 0.01 * (i % 50));
    scores.put({0, 0, i}, std::floor(scores.get({0, 0, i}).real() * 40) / 40);  // some are equal
  }
  scores.put({0, 0, 7}, std::nan(""));
  const auto at = [&](int64_t i, int64_t k) {
    return static_cast<float>(many.get({0, i, k}).real());
  };
  const auto score = [&](int64_t i) { return scores.get({0, 0, i}).real(); };
  const auto share = [&](int64_t a, int64_t b) {
    const float h = std::min(at(a, 2), at(b, 2)) - std::max(at(a, 0), at(b, 0));
    const float w = std::min(at(a, 3), at(b, 3)) - std::max(at(a, 1), at(b, 1));
    const float both = h > 0 && w > 0 ? h * w : 0;
    const auto area = [&](int64_t i) { return (at(i, 2) - at(i, 0)) * (at(i, 3) - at(i, 1)); };
    return both / (area(a) + area(b) - both);
  };
  for (const int64_t most : {1, 20, 400})
    for (const std::optional<float> least : {std::optional<float>(), std::optional<float>(0.3f)}) {
      std::vector<int64_t> order;
      for (int64_t i = 0; i < kCount; ++i)
        if (least ? score(i) > *least : score(i) == score(i)) order.push_back(i);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score(a) > score(b); });
      std::vector<int64_t> left;
      std::vector<double> expected;
      for (const int64_t i : order) {
        bool lost = std::ssize(left) >= most;
        for (const int64_t k : left) lost = lost || share(i, k) > 0.4f;
        if (lost) continue;
        left.push_back(i);
        expected.insert(expected.end(), {0, 0, static_cast<double>(i)});
      }
      EXPECT_EQ(kept(many, scores, most, 0.4f, least), expected);
    }
}

TEST(ReferenceSuppressBoxes, OfAClassOrOfAny) {
  const TestTensor two(DType::kF32, {1, 2, 4}, {0, 0, 2, 2, 0, 0, 2, 1.8});
  const TestTensor scores(DType::kF32, {1, 2, 2}, {0.9, 0.2, 0.8, 0.7});
  const auto run = [&](const TestTensor& b, bool per_class, const char* mode) {
    return run_reference("suppress_boxes", {b, scores},
                         {{"per_class", per_class}, {"coordinates", mode}});
  };
  EXPECT_TRUE(same(run(two, true, "corners_height_first"),
                   TestTensor(DType::kF32, {1, 2, 2}, {0.9, 0, 0, 0.7})));
  EXPECT_TRUE(same(run(two, false, "corners_height_first"),
                   TestTensor(DType::kF32, {1, 2, 2}, {0.9, 0, 0, 0})));
  // The same boxes by their centres, and boxes that only touch.
  const TestTensor centres(DType::kF32, {1, 2, 4}, {1, 1, 2, 2, 0.9, 1, 1.8, 2});
  EXPECT_TRUE(same(run(centres, true, "centers_width_first"),
                   TestTensor(DType::kF32, {1, 2, 2}, {0.9, 0, 0, 0.7})));
  const TestTensor apart(DType::kF32, {1, 2, 4}, {0, 0, 2, 2, 0, 2, 2, 4});
  EXPECT_TRUE(same(run(apart, true, "corners_width_first"), scores));
}

}  // namespace
}  // namespace anymps
