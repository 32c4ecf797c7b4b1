// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor numbered(Shape shape, DType dtype = DType::kF32) {
  TestTensor tensor(dtype, std::move(shape));
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(static_cast<double>(i));
  return tensor.set(values);
}
std::vector<double> values(const char* op, TestInputs inputs, const NamedAttrs& attrs = {}) {
  return run_reference(op, std::move(inputs), attrs).values();
}

TEST(ReferenceShape, OrderIsKept) {
  const TestTensor x = numbered({2, 3});
  EXPECT_EQ(values("reshape", {x}, {{"shape", Ints{3, 2}}}), (Row{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values("flatten", {x.scrambled()}, {{"axis", 0}}), (Row{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values("reshape", {numbered({0, 3})}, {{"shape", Ints{3, 0}}, {"allow_zero", true}}),
            Row{});
}

TEST(ReferenceShape, Transpose) {
  EXPECT_EQ(values("transpose", {numbered({2, 3})}), (Row{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values("transpose", {numbered({2, 2, 2})}, {{"perm", Ints{1, 2, 0}}}),
            (Row{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(ReferenceShape, Expand) {
  EXPECT_EQ(values("expand", {numbered({2, 1})}, {{"shape", Ints{2, 2, 3}}}),
            (Row{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
}

TEST(ReferenceShape, ShapeAndSize) {
  EXPECT_EQ(values("shape", {numbered({2, 3, 4})}), (Row{2, 3, 4}));
  EXPECT_EQ(values("shape", {numbered({2, 3, 4})}, {{"start", -2}, {"end", 2}}), (Row{3}));
  EXPECT_EQ(values("size", {numbered({2, 0})}), (Row{0}));
  EXPECT_EQ(values("size", {numbered({})}), (Row{1}));
}

TEST(ReferenceShape, DepthToSpace) {
  const TestTensor x = numbered({1, 8, 1, 2});  // channel c holds 2c, 2c + 1
  EXPECT_EQ(values("depth_to_space", {x}, {{"block", 2}}),
            (Row{0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15}));
  EXPECT_EQ(values("depth_to_space", {x}, {{"block", 2}, {"mode", "CRD"}}),
            (Row{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}));
  EXPECT_EQ(values("depth_to_space", {numbered({1, 1, 1, 4})},
                   {{"block", 2}, {"layout", "channels_last"}}),
            (Row{0, 1, 2, 3}));
}

TEST(ReferenceShape, SpaceToDepthIsTheInverse) {
  for (const char* mode : {"DCR", "CRD"}) {
    for (const char* layout : {"channels_first", "channels_last"}) {
      const NamedAttrs attrs{{"block", 2}, {"mode", mode}, {"layout", layout}};
      const TestTensor x = numbered({2, 8, 4, 12}, DType::kI32);
      EXPECT_TRUE(
          same(run_reference("space_to_depth",
                             {run_reference("depth_to_space", {x.scrambled()}, attrs)}, attrs),
               x));
    }
  }
}

// What moves elements moves any dtype, from any layout.
TEST(ReferenceMoves, AllDtypesAndLayouts) {
  int ran = 0;
  for (const Op* op : all_ops()) {
    if (op->family != "movement" || !op->is(kMoves)) continue;
    for (const Sample& sample : op->test.samples) {
      for (const DType moved : kComputeDTypes) {
        SCOPED_TRACE(op->name + " " + sample.label + " " + name(moved));
        TestInputs plain, strided;
        for (size_t i = 0; i < sample.shapes.size(); ++i) {
          const InputSpec& spec = op->inputs[std::min(i, op->inputs.size() - 1)];
          plain.emplace_back();
          if (sample.shapes[i] == Sample::absent) continue;
          const DType dtype = spec.type == "I" ? DType::kI32 : moved;
          plain.back() = TestTensor(dtype, sample.shapes[i]).fill(i + 1, -9, 9);
        }
        for (const auto& [input, fixed] : sample.values)
          plain[static_cast<size_t>(input)]->set(Row(fixed.begin(), fixed.end()));
        for (const auto& input : plain)
          strided.push_back(input ? std::optional(input->scrambled()) : std::nullopt);
        const auto expected =
            run_reference_all(op->name.c_str(), plain, sample.attrs, sample.outputs);
        const auto actual =
            run_reference_all(op->name.c_str(), strided, sample.attrs, sample.outputs);
        for (size_t k = 0; k < expected.size(); ++k) EXPECT_TRUE(same(actual[k], expected[k]));
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 1000);
}

}  // namespace
}  // namespace anymps::testing
