// SPDX-License-Identifier: Apache-2.0
// A call made ready: what must be known before its shapes are, views, and dense copies of inputs.
#include "runtime/preparation.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/eager/eager.h"
#include "support/device_tensor.h"

namespace anymps {
namespace {

PreparedCall call_of(const char* op, const NamedAttrs& attrs = {}) {
  const Op& record = get_op(op);
  return PreparedCall(*Device::get("cpu"), record, Attrs(record, attrs), "n");
}

TensorDesc transposed(int64_t rows, int64_t columns) {
  TensorDesc desc(DType::kF32, {1, 1, columns, rows});
  desc.strides = {rows * columns, rows * columns, 1, columns};
  return desc;
}

NamedAttrs to_sizes() { return {{"sizes", std::vector<int64_t>{1, 1, 7, 9}}, {"mode", "linear"}}; }

TEST(Preparation, AsksForElementsAndThenForShapes) {
  PreparedCall open = call_of("reshape");
  open.add_input({DType::kF32, {2, 3}}, std::nullopt);
  open.add_input({DType::kI64, {2}}, std::nullopt);
  EXPECT_TRUE(open.lacks_contents());
  EXPECT_EQ(open.infer(1, ""), PreparedCall::kContents);

  PreparedCall known = call_of("reshape");
  known.add_input({DType::kF32, {2, 3}}, std::nullopt);
  known.add_input({DType::kI64, {2}}, std::vector<int64_t>{3, -1});
  EXPECT_FALSE(known.lacks_contents());
  EXPECT_EQ(known.infer(1, ""), PreparedCall::kNothing);
  EXPECT_EQ(known.request.outputs.at(0).shape, (Shape{3, 2}));

  PreparedCall counted = call_of("nonzero");
  counted.add_input({DType::kF32, {2, 3}}, std::nullopt);
  EXPECT_EQ(counted.infer(1, ""), PreparedCall::kMeasure);
  const std::vector<Shape> measured{{2, 4}};
  EXPECT_EQ(counted.infer(1, "", &measured), PreparedCall::kNothing);
  EXPECT_EQ(counted.request.outputs.at(0).shape, (Shape{2, 4}));
}

TEST(Preparation, AViewNeedsNoKernel) {
  PreparedCall call = call_of("transpose", {{"perm", std::vector<int64_t>{1, 0}}});
  call.add_input({DType::kF32, {2, 3}}, std::nullopt);
  ASSERT_EQ(call.infer(1, ""), PreparedCall::kNothing);
  ASSERT_TRUE(call.find_views());
  EXPECT_EQ(call.views.at(0).strides, (Strides{1, 3}));
  PreparedCall computed = call_of("add");
  for (int i = 0; i < 2; ++i) computed.add_input({DType::kF32, {2}}, std::nullopt);
  ASSERT_EQ(computed.infer(1, ""), PreparedCall::kNothing);
  EXPECT_FALSE(computed.find_views());
}

TEST(Preparation, StridesThatOnlyTheReferenceTakesArePacked) {
  PreparedCall call = call_of("resize", to_sizes());
  call.add_input(transposed(5, 4), std::nullopt);
  ASSERT_EQ(call.infer(1, ""), PreparedCall::kNothing);
  call.choose();
  EXPECT_EQ(call.packed, std::vector<bool>{true});
  EXPECT_FALSE(call.choice->is_fallback) << call.choice->name;
  EXPECT_TRUE(call.request.in(0).contiguous());
}

TEST(Preparation, AnEagerCallPacksToo) {
  const DevicePtr device = Device::get("cpu");
  std::vector<float> values(20);
  std::iota(values.begin(), values.end(), 0.f);
  Tensor strided = testing::tensor(*device, {1, 1, 5, 4}, values);
  strided.desc = transposed(5, 4);
  const Tensor dense = device->contiguous(strided);
  const int64_t sizes[] = {1, 1, 7, 9};
  EagerAttr size{"sizes", AttrKind::kInts}, mode{"mode", AttrKind::kString};
  size.ints = sizes;
  mode.s = "linear";
  const EagerAttr attrs[] = {size, mode};
  Tensor y, expected;
  const Tensor *x = &strided, *same = &dense;
  device->eager().call(get_op("resize"), {&x, 1}, attrs, {&y, 1});
  device->eager().call(get_op("resize"), {&same, 1}, attrs, {&expected, 1});
  EXPECT_EQ(testing::elements(*device, y), testing::elements(*device, expected));
}

}  // namespace
}  // namespace anymps
