// SPDX-License-Identifier: Apache-2.0
// Expected numbers are those of ONNX's reference evaluator, and by hand.
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
