// SPDX-License-Identifier: Apache-2.0
// Single nodes where PyTorch's rules are easy to miss. Expected numbers are PyTorch's. Each kind as
// the exporter writes it is tested with the bundles of tests/data/executorch.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "formats/executorch/payload_builder.h"
#include "formats/onnx/run.h"

namespace anymps::executorch {
namespace {

using List = PayloadBuilder::List;
using Fields = PayloadBuilder::Fields;
using Longs = std::vector<int64_t>;
constexpr float kInf = INFINITY;

HostTensor counting(const Shape& shape, float first = 0) {
  Floats values(static_cast<size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), first);
  return floats(shape, values);
}

void expect_floats(const HostTensor& got, const Shape& shape, const Floats& want) {
  EXPECT_EQ(got.shape, shape);
  const Floats values = got.values<float>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (std::isinf(want[i]))
      EXPECT_EQ(values[i], want[i]) << "element " << i;
    else
      EXPECT_NEAR(values[i], want[i], 1e-5) << "element " << i;
}

// A payload with one node. Inputs are declared as they are fed.
struct OneNode : PayloadBuilder {
  std::vector<HostTensor> feeds;

  int feed(const HostTensor& tensor) {
    feeds.push_back(tensor);
    return input(tensor.dtype, List(tensor.shape.begin(), tensor.shape.end()));
  }
  HostTensor run(std::string_view kind, const Fields& fields, int result) {
    node(kind, fields);
    output(result);
    return run_graph(*import(), feeds).at(0);
  }
};

HostTensor binary(std::string_view kind, const HostTensor& a, const HostTensor& b, DType type,
                  Fields more = {}) {
  OneNode p;
  const int x = p.feed(a), y = p.feed(b);
  const int z = p.value(type, List(a.shape.begin(), a.shape.end()));
  more.insert(more.end(), {{0, x}, {1, y}, {2, z}});
  return p.run(kind, more, z);
}

TEST(PayloadNodes, Quotients) {
  const HostTensor a = floats({9}, {1, -1, 7, -7, 5, -5, 0, 3, -2.5});
  const HostTensor b = floats({9}, {.1f, .1f, -2, 2, kInf, kInf, 3, 0, 0});
  expect_floats(binary("MPSDiv", a, b, F32, {{3, std::string("floor")}}), {9},
                {9, -10, -4, -4, 0, -1, 0, kInf, -kInf});
  const HostTensor c = floats({4}, {1, -1, 7, -7}), d = floats({4}, {.1f, .1f, -2, 2});
  expect_floats(binary("MPSDiv", c, d, F32, {{3, std::string("trunc")}}), {4}, {10, -10, -3, -3});
  const HostTensor i = HostTensor::of<int64_t>({3}, {7, -7, 9}),
                   j = HostTensor::of<int64_t>({3}, {2, 2, -2});
  expect_floats(binary("MPSDiv", i, j, F32), {3}, {3.5, -3.5, -4.5});
  // floor_divide comes without its mode.
  EXPECT_EQ(binary("MPSDiv", i, j, I64).values<int64_t>(), (Longs{3, -4, -5}));
}

TEST(PayloadNodes, RemaindersHaveTheSignOfOneSide) {
  const HostTensor a = floats({5}, {7, -7, 7, -7, 5.5}), b = floats({5}, {3, 3, -3, -3, 2});
  expect_floats(binary("MPSFmod", a, b, F32), {5}, {1, -1, 1, -1, 1.5});
  expect_floats(binary("MPSRemainder", a, b, F32), {5}, {1, 2, -2, -1, 1.5});
}

TEST(PayloadNodes, SumsTakeAlpha) {
  const HostTensor a = floats({2}, {1, 2}), b = floats({2}, {10, 20});
  expect_floats(binary("MPSAdd", a, b, F32, {{3, 0.5f}}), {2}, {6, 12});
  expect_floats(binary("MPSSub", a, b, F32, {{3, 2.f}}), {2}, {-19, -38});
  expect_floats(binary("MPSAdd", a, b, F32, {{3, 0.f}}), {2}, {1, 2});
}

TEST(PayloadNodes, IntegersBecomeFloats) {
  const HostTensor a = HostTensor::of<int64_t>({2}, {1, -1}),
                   b = HostTensor::of<int64_t>({2}, {2, -2});
  expect_floats(binary("MPSAtan2", a, b, F32), {2}, {0.463648f, -2.677945f});
  OneNode p;
  const int x = p.feed(a), y = p.value(F32, {2});
  expect_floats(p.run("MPSExp", {{0, x}, {1, y}}, y), {2}, {2.7182818f, 0.3678794f});
}

TEST(PayloadNodes, Bools) {
  const std::vector<uint8_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  const HostTensor x(DType::kBool, {4}, a.data()), y(DType::kBool, {4}, b.data());
  const auto logic = [&](const char* kind, Fields more = {}) {
    return binary(kind, x, y, DType::kBool, std::move(more)).values<uint8_t>();
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(logic("MPSAdd", {{3, 1.f}}), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(logic("MPSMul"), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(logic("MPSBitwiseXor"), (Bytes{0, 1, 1, 0}));
  EXPECT_EQ(logic("MPSLt"), (Bytes{0, 1, 0, 0}));
  EXPECT_EQ(logic("MPSMinimum"), (Bytes{0, 0, 0, 1}));
}

struct IndexCase {
  const char* label;
  std::vector<std::pair<Shape, Longs>> indices;  // an empty list: None
  Shape shape;
  Floats want;
};

TEST(PayloadNodes, IndexTensor) {
  const IndexCase cases[] = {
      {"one axis", {{{}, {}}, {{3}, {2, 0, -1}}}, {2, 3, 4}, {8,  9,  10, 11, 0,  1,  2,  3,
                                                              8,  9,  10, 11, 20, 21, 22, 23,
                                                              12, 13, 14, 15, 20, 21, 22, 23}},
      {"axes next to each other",
       {{{}, {}}, {{2, 2}, {0, -1, 2, 1}}, {{2}, {3, -2}}},
       {2, 2, 2},
       {3, 10, 11, 6, 15, 22, 23, 18}},
      {"a gap",
       {{{2, 1}, {1, 0}}, {{}, {}}, {{2}, {3, -2}}},
       {2, 2, 3},
       {15, 19, 23, 14, 18, 22, 3, 7, 11, 2, 6, 10}},
  };
  for (const IndexCase& test : cases) {
    SCOPED_TRACE(test.label);
    OneNode p;
    const int x = p.feed(counting({2, 3, 4}));
    List ids;
    for (const auto& [shape, values] : test.indices)
      ids.push_back(values.empty() ? -1 : p.feed(HostTensor::of<int64_t>(shape, values)));
    const int y = p.value(F32, List(test.shape.begin(), test.shape.end()));
    expect_floats(p.run("MPSIndexTensor", {{0, x}, {1, ids}, {2, y}}, y), test.shape, test.want);
  }
}

const std::vector<uint8_t> kMask = {1, 0, 1, 0, 1, 0};

TEST(PayloadNodes, IndexByAMask) {
  OneNode p;
  const int x = p.feed(counting({2, 3, 4})),
            mask = p.feed(HostTensor(DType::kBool, {2, 3}, kMask.data()));
  const int y = p.value(F32, {3, 4});
  expect_floats(p.run("MPSIndexTensor", {{0, x}, {1, List{mask}}, {2, y}}, y), {3, 4},
                {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19});
}

HostTensor put(const std::vector<HostTensor>& indices, const List& gaps, const HostTensor& values) {
  OneNode p;
  const int x = p.feed(counting({2, 3, 4}));
  List ids;
  size_t next = 0;
  for (const int gap : gaps) ids.push_back(gap ? -1 : p.feed(indices[next++]));
  const int v = p.feed(values), y = p.value(F32, {2, 3, 4});
  return p.run("MPSIndexPut", {{0, x}, {1, ids}, {3, v}, {4, y}}, y);
}

TEST(PayloadNodes, IndexPut) {
  const HostTensor i = HostTensor::of<int64_t>({2, 2}, {0, -1, 2, 1});
  const HostTensor j = HostTensor::of<int64_t>({2}, {3, -2});
  expect_floats(
      put({i, j}, {1, 0, 0}, floats({2, 2}, {-1, -2, -3, -4})), {2, 3, 4},
      {0, 1, 2, -1, 4, 5, -4, 7, 8, 9, -2, -3, 12, 13, 14, -1, 16, 17, -4, 19, 20, 21, -2, -3});
  const HostTensor k = HostTensor::of<int64_t>({2, 1}, {1, 0});
  expect_floats(
      put({k, j}, {0, 1, 0}, floats({3}, {-1, -2, -3})), {2, 3, 4},
      {0, 1, -1, -1, 4, 5, -2, -2, 8, 9, -3, -3, 12, 13, -1, -1, 16, 17, -2, -2, 20, 21, -3, -3});
  const HostTensor rows = HostTensor::of<int64_t>({2}, {2, 0});
  expect_floats(
      put({rows}, {1, 0}, floats({2, 1}, {-1, -2})), {2, 3, 4},
      {-2, -2, -2, -2, 4, 5, 6, 7, -1, -1, -1, -1, -2, -2, -2, -2, 16, 17, 18, 19, -1, -1, -1, -1});
}

TEST(PayloadNodes, IndexPutByAMask) {
  const HostTensor mask(DType::kBool, {2, 3}, kMask.data());
  expect_floats(
      put({mask}, {0}, floats({1}, {-9})), {2, 3, 4},
      {-9, -9, -9, -9, 4, 5, 6, 7, -9, -9, -9, -9, 12, 13, 14, 15, -9, -9, -9, -9, 20, 21, 22, 23});
  expect_floats(put({mask}, {0}, floats({3, 4}, {0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11})),
                {2, 3, 4}, {0,  -1, -2, -3, 4,  5,  6,   7,   -4, -5, -6, -7,
                            12, 13, 14, 15, -8, -9, -10, -11, 20, 21, 22, 23});
}

TEST(PayloadNodes, ScatterReadsOnlyWhatTheIndexCovers) {
  OneNode p;
  const int x = p.feed(floats({3, 4}, Floats(12, 0)));
  const int index = p.feed(HostTensor::of<int64_t>({2, 2}, {0, 2, 1, 3}));
  const int source = p.feed(counting({3, 4}, 1)), y = p.value(F32, {3, 4});
  expect_floats(p.run("MPSScatter", {{0, x}, {1, y}, {2, int64_t{1}}, {3, index}, {4, source}}, y),
                {3, 4}, {1, 0, 2, 0, 0, 5, 0, 6, 0, 0, 0, 0});
}

HostTensor image() {
  Floats values(30);
  for (int i = 0; i < 30; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i * 7 % 31);
  return floats({1, 1, 5, 6}, values);
}

// With ceil_mode the exporter writes the padding at the end times the stride.
TEST(PayloadNodes, MaxPoolWithIndices) {
  OneNode p;
  const int x = p.feed(image()), y = p.value(F32, {1, 1, 3, 4}),
            places = p.value(I64, {1, 1, 3, 4});
  p.output(places);
  const Fields fields = {{0, x}, {1, 3}, {2, 3}, {3, 2},  {4, 2},     {5, 1},  {6, 2},
                         {7, 1}, {8, 2}, {9, 1}, {10, 1}, {11, true}, {14, y}, {15, places}};
  p.node("MPSMaxPool2DWithIndices", fields);
  p.output(y);
  const auto results = run_graph(*p.import(), p.feeds);
  EXPECT_EQ(results[0].values<int64_t>(), (Longs{7, 8, 4, 11, 13, 13, 22, 17, 25, 26, 22, 29}));
  expect_floats(results[1], {1, 1, 3, 4}, {18, 25, 28, 15, 29, 29, 30, 26, 20, 27, 30, 17});
}

TEST(PayloadNodes, AvgPool) {
  const auto pool = [](bool count_pads, int divisor, bool batched) {
    OneNode p;
    HostTensor source = image();
    if (!batched) source.shape = {1, 5, 6};
    const int x = p.feed(source), y = p.value(F32, batched ? List{1, 1, 3, 4} : List{1, 3, 4});
    HostTensor result = p.run("MPSAvgPool2D",
                              {{0, x},
                               {1, 2},
                               {2, 3},
                               {3, 2},
                               {4, 2},
                               {5, 1},
                               {6, 2},
                               {7, 1},
                               {8, 2},
                               {9, 1},
                               {10, 1},
                               {11, true},
                               {12, count_pads},
                               {13, divisor},
                               {14, y},
                               {15, -1}},
                              y);
    result.shape = {12};
    return result;
  };
  expect_floats(pool(false, 0, true), {12},
                {3.5, 14, 17.666666f, 4, 20, 15, 13.5, 20.5, 11, 16.333334f, 14.833333f, 11.5});
  expect_floats(pool(true, 0, false), {12},
                {1.166667f, 7, 8.833333f, 1, 13.333333f, 15, 13.5, 10.25, 7.333333f, 16.333334f,
                 14.833333f, 5.75});
  expect_floats(pool(true, 5, true), {12},
                {1.4f, 8.4f, 10.6f, .8f, 16, 18, 16.2f, 8.2f, 8.8f, 19.6f, 17.8f, 4.6f});
}

TEST(PayloadNodes, LayerNormGivesItsStatistics) {
  OneNode p;
  const int x = p.feed(floats({2, 3}, {1, 2, 4, 0, -1, 3}));
  const int y = p.value(F32, {2, 3}), mean = p.value(F32, {2, 1}), rstd = p.value(F32, {2, 1});
  p.node("MPSLayerNorm",
         {{0, x}, {1, List{3}}, {2, -1}, {3, -1}, {4, 1e-5f}, {5, mean}, {6, y}, {7, rstd}});
  for (const int id : {y, mean, rstd}) p.output(id);
  const auto results = run_graph(*p.import(), p.feeds);
  expect_floats(results[0], {2, 3},
                {-1.069041f, -.26726f, 1.336302f, -.392232f, -.980579f, 1.372811f});
  expect_floats(results[1], {2, 1}, {2.333333f, .666667f});
  expect_floats(results[2], {2, 1}, {.801781f, .588347f});
}

TEST(PayloadNodes, ConvolutionOverOneAxis) {
  OneNode p;
  const int x = p.feed(counting({1, 2, 5}));
  const int w = p.constant<float>(F32, {2, 1, 3}, {1, 0, -1, 2, 1, 0});
  const int bias = p.constant<float>(F32, {2}, {.5, -.5}), y = p.value(F32, {1, 2, 3});
  expect_floats(p.run("MPSConv2D",
                      {{0, x},
                       {1, w},
                       {2, bias},
                       {3, y},
                       {4, 2},
                       {5, 1},
                       {6, 1},
                       {7, 1},
                       {8, 2},
                       {9, 1},
                       {10, 1}},
                      y),
                {1, 2, 3}, {-.5, -1.5, 3.5, 4.5, 18.5, 24.5});
}

TEST(PayloadNodes, Addmm) {
  OneNode p;
  const int bias = p.feed(floats({2}, {1, 2})), a = p.feed(floats({1, 2}, {1, 2}));
  const int b = p.feed(floats({2, 2}, {1, 0, 3, -1})), y = p.value(F32, {1, 2});
  expect_floats(p.run("MPSAddmm", {{0, bias}, {1, a}, {2, b}, {3, y}, {4, .5f}, {5, 2.f}}, y),
                {1, 2}, {14.5, -3});
}

// linear and attention: the views around a product go away, and what follows fuses with it.
TEST(PayloadNodes, ProductsBetweenViews) {
  OneNode p;
  const int x = p.feed(counting({1, 2, 3})), flat = p.value(F32, {2, 3}), y = p.value(F32, {2, 2});
  const int w = p.constant<float>(F32, {3, 2}, {1, 0, 0, 1, 1, -1});
  const int bias = p.constant<float>(F32, {2}, {10, 20});
  const int view = p.value(F32, {1, 2, 2}), z = p.value(F32, {1, 2, 2});
  p.node("MPSView", {{0, x}, {1, flat}, {2, 2}, {3, List{2, 3}}});
  p.node("MPSAddmm", {{0, bias}, {1, flat}, {2, w}, {3, y}, {4, 1.f}, {5, 1.f}});
  p.node("MPSView", {{0, y}, {1, view}, {2, 3}, {3, List{1, 2, 2}}});
  p.node("MPSReLU", {{0, view}, {2, z}});
  p.output(z);
  const auto graph = p.import();
  for (const Node* node : graph->node_list())
    if (node->is("matmul")) {
      EXPECT_EQ(node->output()->shape().size(), 3u);
    }
  expect_floats(run_graph(*graph, p.feeds)[0], {1, 2, 2}, {12, 19, 18, 19});
}

TEST(PayloadNodes, BatchesOfProductsBetweenViews) {
  OneNode p;
  const int a = p.feed(counting({1, 2, 1, 2})), b = p.feed(counting({1, 2, 2, 1}));
  const int flat_a = p.value(F32, {2, 1, 2}), flat_b = p.value(F32, {2, 2, 1});
  const int y = p.value(F32, {2, 1, 1});
  p.node("MPSView", {{0, a}, {1, flat_a}, {2, 3}, {3, List{2, 1, 2}}});
  p.node("MPSView", {{0, b}, {1, flat_b}, {2, 3}, {3, List{2, 2, 1}}});
  expect_floats(p.run("MPSMatMul", {{0, flat_a}, {1, flat_b}, {2, y}}, y), {2, 1, 1}, {1, 13});
}

TEST(PayloadNodes, PixelShuffleOfAnyRank) {
  OneNode p;
  const int x = p.feed(counting({2, 1, 4, 1, 2})), y = p.value(F32, {2, 1, 1, 2, 4});
  expect_floats(p.run("MPSPixelShuffle", {{0, x}, {1, y}, {2, 2}}, y), {2, 1, 1, 2, 4},
                {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15});
}

TEST(PayloadNodes, PadsMayCrop) {
  OneNode p;
  const int x = p.feed(counting({2, 3})), y = p.value(F32, {3, 3});
  expect_floats(p.run("MPSConstantPadND", {{0, x}, {1, y}, {2, List{1, -1, 0, 1}}, {3, 9.f}}, y),
                {3, 3}, {9, 0, 1, 9, 3, 4, 9, 9, 9});
}

TEST(PayloadNodes, ArangeHasItsDeclaredExtent) {
  OneNode p;
  const int y = p.value(F32, {3});
  expect_floats(p.run("MPSArange", {{0, y}, {1, 0.f}, {2, .3f}, {3, .1f}, {4, F32}}, y), {3},
                {0, .1f, .2f});
}

// Two elements in a byte, the first in its low half.
TEST(PayloadNodes, DequantizesGroupsOfInt4) {
  OneNode p;
  const int w = p.constant<uint8_t>(DType::kI4, {2, 4}, {0x21, 0xf8, 0x70, 0x0e});
  const int scales = p.constant<float>(F32, {2, 2}, {1, 10, 100, .5});
  const int y = p.value(F32, {2, 4});
  expect_floats(p.run("MPSDequantizePerChannelGroup",
                      {{0, w},
                       {1, y},
                       {2, scales},
                       {3, -1},
                       {4, -8},
                       {5, 7},
                       {6, DType::kI8},
                       {7, 2},
                       {8, F32}},
                      y),
                {2, 4}, {1, 2, -80, -10, 0, 700, -1, 0});
}

TEST(PayloadNodes, ClampReadsTheTableOfTheNode) {
  OneNode p;
  const int x = p.feed(floats({3}, {-2, .5, 9})), y = p.value(F32, {3});
  p.node("MPSClamp", {{0, x}, {1, y}}, {{0, -1.f}, {1, kInf}});
  p.output(y);
  expect_floats(run_graph(*p.import(), p.feeds)[0], {3}, {-1, .5, 9});
}

TEST(PayloadNodes, CatPassesOverNothing) {
  OneNode p;
  const int nothing = p.feed(floats({0}, {})), a = p.feed(counting({1, 2})),
            b = p.feed(counting({2, 2}, 5));
  const int y = p.value(F32, {3, 2});
  expect_floats(p.run("MPSCat", {{0, List{nothing, a, b}}, {1, y}, {2, 0}}, y), {3, 2},
                {0, 1, 5, 6, 7, 8});
}

}  // namespace
}  // namespace anymps::executorch
