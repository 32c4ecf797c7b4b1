// SPDX-License-Identifier: Apache-2.0
// What single ops become, above all where opsets differ. Each case is a one-node model: the type
// that its output must have and, where numbers tell more, the numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "formats/onnx/model_builder.h"
#include "formats/onnx/read/import.h"
#include "formats/onnx/read/registry.h"
#include "formats/onnx/run.h"
#include "formats/onnx/schema/schemas.h"
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {
namespace {

using Attr = ModelBuilder::Attr;
using Ints = std::vector<int64_t>;

std::string output_type(const ModelBuilder& model) {
  auto graph = model.import();
  verify(*graph);
  return to_string(graph->outputs().at(0)->type);
}

// Runs a model with one input of 0, 1, 2, ….
Floats run_counting(const ModelBuilder& model, const Shape& shape, float first = 0) {
  Floats x(static_cast<size_t>(element_count(shape)));
  std::iota(x.begin(), x.end(), first);
  return run_graph(*model.import(), {HostTensor::of(shape, x)}).at(0).values<float>();
}

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << "element " << i;
}

struct TypeCase {
  const char* label;
  ModelBuilder model;
  const char* type;
};

ModelBuilder image(int opset = 17) {
  return ModelBuilder(opset).input("x", {"N", 4, 10, 11}).output("y");
}
ModelBuilder matrix(int opset = 17) { return ModelBuilder(opset).input("x", {"N", 6}).output("y"); }

TEST(OnnxConvert, OutputTypes) {
  auto weights = [](int opset = 17) { return image(opset).zeros("w", {8, 4, 3, 3}); };
  const std::vector<TypeCase> cases = {
      {"conv", weights().node("Conv", {"x", "w"}, {"y"}), "f32[N, 8, 8, 9]"},
      {"conv padded",
       weights().node("Conv", {"x", "w"}, {"y"},
                      {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}),
       "f32[N, 8, 5, 6]"},
      {"conv same",
       weights().node("Conv", {"x", "w"}, {"y"},
                      {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 2}}}),
       "f32[N, 8, 5, 6]"},
      {"conv valid",
       weights().node("Conv", {"x", "w"}, {"y"},
                      {{"auto_pad", "VALID"}, {"kernel_shape", Ints{3, 3}}}),
       "f32[N, 8, 8, 9]"},
      {"conv grouped",
       image()
           .zeros("w", {8, 2, 1, 1})
           .zeros("b", {8})
           .node("Conv", {"x", "w", "b"}, {"y"}, {{"group", 2}}),
       "f32[N, 8, 10, 11]"},
      {"conv transposed",
       image()
           .zeros("w", {4, 5, 3, 3})
           .node("ConvTranspose", {"x", "w"}, {"y"}, {{"strides", Ints{2, 2}}}),
       "f32[N, 5, 21, 23]"},
      {"max pool",
       image().node("MaxPool", {"x"}, {"y"},
                    {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}),
       "f32[N, 4, 4, 5]"},
      {"max pool ceil",
       image().node("MaxPool", {"x"}, {"y"},
                    {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}}),
       "f32[N, 4, 5, 5]"},
      {"average pool", image(9).node("AveragePool", {"x"}, {"y"}, {{"kernel_shape", Ints{2, 2}}}),
       "f32[N, 4, 9, 10]"},
      {"global pool", image().node("GlobalAveragePool", {"x"}, {"y"}), "f32[N, 4, 1, 1]"},
      {"flatten", image().node("Flatten", {"x"}, {"y"}), "f32[N, 440]"},
      {"gemm",
       matrix()
           .zeros("w", {5, 6})
           .zeros("c", {5})
           .node("Gemm", {"x", "w", "c"}, {"y"}, {{"transB", 1}}),
       "f32[N, 5]"},
      {"cast", matrix().node("Cast", {"x"}, {"y"}, {{"to", 7}}), "i64[N, 6]"},
      {"squeeze 11",
       ModelBuilder(11)
           .input("x", {1, "N", 1})
           .node("Squeeze", {"x"}, {"y"}, {{"axes", Ints{0}}})
           .output("y"),
       "f32[N, 1]"},
      {"squeeze 13",
       ModelBuilder(13)
           .input("x", {1, "N", 1})
           .ints("a", {-1})
           .node("Squeeze", {"x", "a"}, {"y"})
           .output("y"),
       "f32[1, N]"},
      {"unsqueeze 11", matrix(11).node("Unsqueeze", {"x"}, {"y"}, {{"axes", Ints{0, 3}}}),
       "f32[1, N, 6, 1]"},
      {"unsqueeze 13", matrix().ints("a", {1}).node("Unsqueeze", {"x", "a"}, {"y"}),
       "f32[N, 1, 6]"},
      {"transpose", image().node("Transpose", {"x"}, {"y"}, {{"perm", Ints{0, 2, 3, 1}}}),
       "f32[N, 10, 11, 4]"},
      {"transpose reversed", image().node("Transpose", {"x"}, {"y"}), "f32[11, 10, 4, N]"},
      {"concat", matrix().node("Concat", {"x", "x"}, {"y"}, {{"axis", -1}}), "f32[N, 12]"},
      {"split 11",
       matrix(11).node("Split", {"x"}, {"y", "z"}, {{"axis", 1}, {"split", Ints{2, 4}}}),
       "f32[N, 2]"},
      {"split 13", matrix().ints("s", {5, 1}).node("Split", {"x", "s"}, {"y", "z"}, {{"axis", 1}}),
       "f32[N, 5]"},
      {"split 18 uneven",
       matrix(18).node("Split", {"x"}, {"a", "b", "c", "y"}, {{"axis", 1}, {"num_outputs", 4}}),
       "f32[N, 0]"},
      {"slice 9",
       matrix(9).node("Slice", {"x"}, {"y"},
                      {{"starts", Ints{1}}, {"ends", Ints{-1}}, {"axes", Ints{1}}}),
       "f32[N, 4]"},
      {"slice 13",
       matrix()
           .ints("s", {5})
           .ints("e", {-100})
           .ints("a", {1})
           .ints("t", {-2})
           .node("Slice", {"x", "s", "e", "a", "t"}, {"y"}),
       "f32[N, 3]"},
      {"pad 10",
       matrix(10).node("Pad", {"x"}, {"y"}, {{"pads", Ints{0, 1, 0, 2}}, {"value", 1.0f}}),
       "f32[N, 9]"},
      {"pad 18",
       matrix(18).ints("p", {1, 2}).ints("a", {-1}).node("Pad", {"x", "p", "", "a"}, {"y"}),
       "f32[N, 9]"},
      {"expand", matrix().ints("s", {3, 1, 6}).node("Expand", {"x", "s"}, {"y"}), "f32[3, N, 6]"},
      {"gather", matrix().ints("i", {0, 2}).node("Gather", {"x", "i"}, {"y"}, {{"axis", 1}}),
       "f32[N, 2]"},
      {"reshape", image().ints("s", {0, -1, 11}).node("Reshape", {"x", "s"}, {"y"}),
       "f32[N, 40, 11]"},
      {"reduce 13",
       image(13).node("ReduceMean", {"x"}, {"y"}, {{"axes", Ints{2, 3}}, {"keepdims", 0}}),
       "f32[N, 4]"},
      {"reduce 18", image(18).ints("a", {1}).node("ReduceMean", {"x", "a"}, {"y"}),
       "f32[N, 1, 10, 11]"},
      {"reduce sum 13", image(13).ints("a", {1}).node("ReduceSum", {"x", "a"}, {"y"}),
       "f32[N, 1, 10, 11]"},
      {"reduce all", image().node("ReduceMax", {"x"}, {"y"}, {{"keepdims", 0}}), "f32[]"},
      {"reduce none", image(18).node("ReduceSum", {"x"}, {"y"}, {{"noop_with_empty_axes", 1}}),
       "f32[N, 4, 10, 11]"},
      {"arg max", matrix().node("ArgMax", {"x"}, {"y"}, {{"axis", 1}, {"keepdims", 0}}), "i64[N]"},
      {"resize sizes", image().ints("s", {1, 4, 20, 22}).node("Resize", {"x", "", "", "s"}, {"y"}),
       "f32[1, 4, 20, 22]"},
      {"upsample 9",
       ModelBuilder(9)
           .input("x", {1, 2, 3, 4})
           .floats("s", {4}, {1, 1, 2, 2})
           .node("Upsample", {"x", "s"}, {"y"})
           .output("y"),
       "f32[1, 2, 6, 8]"},
      {"constant of shape",
       ModelBuilder()
           .input("x", {1})
           .ints("s", {2, 3})
           .node("ConstantOfShape", {"s"}, {"y"})
           .output("y"),
       "f32[2, 3]"},
      {"shape 15", image().node("Shape", {"x"}, {"y"}, {{"start", 1}}), "i64[3]"},
      {"lstm",
       ModelBuilder()
           .input("x", {"S", "N", 3})
           .zeros("w", {1, 20, 3})
           .zeros("r", {1, 20, 5})
           .node("LSTM", {"x", "w", "r"}, {"y"}, {{"hidden_size", 5}})
           .output("y"),
       "f32[S, 1, N, 5]"},
      {"gru",
       ModelBuilder()
           .input("x", {"S", "N", 3})
           .zeros("w", {2, 15, 3})
           .zeros("r", {2, 15, 5})
           .node("GRU", {"x", "w", "r"}, {"y"},
                 {{"hidden_size", 5}, {"direction", "bidirectional"}})
           .output("y"),
       "f32[S, 2, N, 5]"},
      {"dropout", image(9).node("Dropout", {"x"}, {"d", "mask"}).node("Relu", {"d"}, {"y"}),
       "f32[N, 4, 10, 11]"},
      {"softmax 9", image(9).node("Softmax", {"x"}, {"y"}), "f32[N, 4, 10, 11]"},
  };
  for (const TypeCase& c : cases) {
    try {
      EXPECT_EQ(output_type(c.model), c.type) << c.label;
    } catch (const Error& error) {
      ADD_FAILURE() << c.label << ": " << error.what();
    }
  }
}

TEST(OnnxConvert, ShapeArithmeticFollowsSymbols) {
  // torch's view(x.size(0), x.size(1), 2, -1), and expand_as through Where and Equal.
  auto view = ModelBuilder()
                  .input("x", {"N", "S", 6})
                  .scalar_int("zero", 0)
                  .scalar_int("one", 1)
                  .ints("axis", {0})
                  .ints("rest", {2, -1})
                  .node("Shape", {"x"}, {"s"})
                  .node("Gather", {"s", "zero"}, {"n"})
                  .node("Gather", {"s", "one"}, {"m"})
                  .node("Unsqueeze", {"n", "axis"}, {"n1"})
                  .node("Unsqueeze", {"m", "axis"}, {"m1"})
                  .node("Concat", {"n1", "m1", "rest"}, {"to"}, {{"axis", 0}})
                  .node("Reshape", {"x", "to"}, {"y"})
                  .output("y");
  EXPECT_EQ(output_type(view), "f32[N, S, 2, 3]");
  EXPECT_EQ(run_graph(*view.import(), {HostTensor::of<float>({3, 1, 6}, Floats(18))})[0].shape,
            (anymps::Shape{3, 1, 2, 3}));

  auto slice = ModelBuilder()
                   .input("x", {"N", "S", 6})
                   .ints("starts", {1})
                   .ints("two", {2})
                   .ints("rest", {-1})
                   .node("Shape", {"x"}, {"s"})
                   .node("Slice", {"s", "starts", "two"}, {"m"})
                   .node("Concat", {"rest", "m"}, {"to"}, {{"axis", 0}})
                   .node("Reshape", {"x", "to"}, {"y"})
                   .output("y");
  auto graph = slice.import();
  ASSERT_EQ(graph->outputs()[0]->shape().size(), 2u);
  EXPECT_EQ(graph->outputs()[0]->shape()[1].str(), "S");
}

TEST(OnnxConvert, SoftmaxBefore13TakesTheTrailingAxesTogether) {
  auto model = [](int opset) {
    return ModelBuilder(opset)
        .input("x", {2, 2, 2})
        .node("Softmax", {"x"}, {"y"}, {{"axis", 1}})
        .output("y");
  };
  const double sum = std::exp(-3.) + std::exp(-2.) + std::exp(-1.) + 1;
  Floats old;
  for (int i = 0; i < 8; ++i) old.push_back(static_cast<float>(std::exp(i % 4 - 3.) / sum));
  expect_near(run_counting(model(11), {2, 2, 2}), old);
  const float low = static_cast<float>(1 / (1 + std::exp(2.)));
  expect_near(run_counting(model(13), {2, 2, 2}),
              {low, low, 1 - low, 1 - low, low, low, 1 - low, 1 - low});
}

TEST(OnnxConvert, ClipTakesItsBoundsFromAttributesOrInputs) {
  auto old = ModelBuilder(6)
                 .input("x", {4})
                 .node("Clip", {"x"}, {"y"}, {{"min", 1.0f}, {"max", 2.0f}})
                 .output("y");
  expect_near(run_counting(old, {4}), {1, 1, 2, 2});
  auto upper = ModelBuilder(13)
                   .input("x", {4})
                   .floats("h", {}, {2})
                   .node("Clip", {"x", "", "h"}, {"y"})
                   .output("y");
  expect_near(run_counting(upper, {4}), {0, 1, 2, 2});
}

TEST(OnnxConvert, GemmScalesBothTerms) {
  auto model =
      ModelBuilder()
          .input("x", {2, 2})
          .floats("b", {2, 2}, {1, 0, 0, 1})
          .floats("c", {1}, {10})
          .node("Gemm", {"x", "b", "c"}, {"y"}, {{"alpha", 2.0f}, {"beta", 0.5f}, {"transA", 1}})
          .output("y");
  expect_near(run_counting(model, {2, 2}), {5, 9, 7, 11});
}

TEST(OnnxConvert, RoundIsHalfToEven) {
  auto model = ModelBuilder().input("x", {4}).node("Round", {"x"}, {"y"}).output("y");
  expect_near(run_counting(model, {4}, -1.5f), {-2, 0, 0, 2});
}

TEST(OnnxConvert, BroadcastBefore7IsAlongAnAxis) {
  auto model = ModelBuilder(6)
                   .input("x", {2, 2, 2})
                   .floats("b", {2}, {10, 20})
                   .node("Add", {"x", "b"}, {"y"}, {{"broadcast", 1}, {"axis", 1}})
                   .output("y");
  expect_near(run_counting(model, {2, 2, 2}), {10, 11, 22, 23, 14, 15, 26, 27});
}

TEST(OnnxConvert, SumAndMeanOfManyInputs) {
  expect_near(
      run_counting(ModelBuilder().input("x", {2}).node("Sum", {"x", "x", "x"}, {"y"}).output("y"),
                   {2}, 1),
      {3, 6});
  expect_near(
      run_counting(ModelBuilder().input("x", {2}).node("Mean", {"x", "x"}, {"y"}).output("y"), {2},
                   1),
      {1, 2});
}

TEST(OnnxConvert, GroupNormalizationBefore21HasOneScaleForEachGroup) {
  auto model = ModelBuilder(18)
                   .input("x", {1, 4, 2})
                   .floats("s", {2}, {1, 10})
                   .floats("b", {2}, {0, 100})
                   .node("GroupNormalization", {"x", "s", "b"}, {"y"},
                         {{"num_groups", 2}, {"epsilon", 0.0f}})
                   .output("y");
  const float a = 1.5f / std::sqrt(1.25f), b = 0.5f / std::sqrt(1.25f);
  expect_near(run_counting(model, {1, 4, 2}),
              {-a, -b, b, a, 100 - 10 * a, 100 - 10 * b, 100 + 10 * b, 100 + 10 * a});
}

// Lists that only running can tell: the type is open, the numbers are not.
TEST(OnnxConvert, ListsThatAreComputed) {
  struct Case {
    ModelBuilder model;
    std::vector<int64_t> list;
    Shape shape;
    Floats y;
  };
  const auto model = [](int opset = 18) {
    return ModelBuilder(opset).input("x", {2, 1, 3}).output("y");
  };
  const auto with = [&](const char* op, int count, std::vector<Attr> attrs = {}) {
    return model()
        .input("i", ModelBuilder::Dims{count}, DataType::kInt64)
        .node(op, {"x", "i"}, {"y"}, attrs);
  };
  const std::vector<Case> cases = {
      {with("Squeeze", 1), {1}, {2, 3}, {0, 1, 2, 3, 4, 5}},
      {with("Unsqueeze", 2), {0, -1}, {1, 2, 1, 3, 1}, {0, 1, 2, 3, 4, 5}},
      {with("ReduceSum", 2, {{"keepdims", 0}}), {0, -1}, {1}, {15}},
      {with("ReduceMax", 1), {2}, {2, 1, 1}, {2, 5}},
      {with("ReduceSumSquare", 0, {{"noop_with_empty_axes", 1}}),
       {},
       {2, 1, 3},
       {0, 1, 4, 9, 16, 25}},
      {model()
           .input("i", {2}, DataType::kInt64)
           .ints("a", {-1})
           .node("Pad", {"x", "i", "", "a"}, {"y"}),
       {1, -1},
       {2, 1, 3},
       {0, 0, 1, 0, 3, 4}},
      {with("CenterCropPad", 3), {1, 2, 4}, {1, 2, 4}, {0, 1, 2, 0, 0, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    auto graph = c.model.import();
    Floats x(6);
    std::iota(x.begin(), x.end(), 0.0f);
    const auto feeds = std::vector<HostTensor>{
        HostTensor::of<float>({2, 1, 3}, x),
        HostTensor::of<int64_t>({static_cast<int64_t>(c.list.size())}, c.list)};
    for (const char* driver : {"reference", "cpu"}) {
      const HostTensor y = run_graph(*graph, feeds, driver).at(0);
      EXPECT_EQ(y.shape, c.shape) << graph->node_count() << driver;
      EXPECT_EQ(y.values<float>(), c.y) << driver;
    }
  }
}

TEST(OnnxConvert, WhatIsNotSupportedSaysSo) {
  struct Case {
    ModelBuilder model;
    const char* part;
  } cases[] = {
      {image()
           .zeros("w", {8, 4, 3, 3})
           .node("Conv", {"x", "w"}, {"y"}, {{"kernel_shape", Ints{5, 5}}}, "c"),
       "node 0 \"c\" (Conv): kernel_shape is [5, 5], but the weights are"},
      {image()
           .zeros("w", {8, 4, 3, 3})
           .node("Conv", {"x", "w"}, {"y"}, {{"auto_pad", "SAME"}}, "c"),
       "auto_pad 'SAME' is not known"},
      {image().node("MaxPool", {"x"}, {"y"}), "attribute 'kernel_shape' is missing"},
      {image()
           .floats("s", {4}, {1, 1, 2, 2})
           .node("Resize", {"x", "", "s"}, {"y"}, {{"mode", "area"}}),
       "mode 'area' is not known"},
      {matrix().node("Add", {"x", "x"}, {"y"}, {{"broadcast", 1}}),
       "attribute 'broadcast' is not supported"},
      {matrix().node("Split", {"x"}, {"y", "z"}, {{"axis", 2}}),
       "axis 2 is out of range for rank 2"},
      {matrix().node("Cast", {"x"}, {"y"}, {{"to", 27}}),
       "element type FLOAT6E2M3 is not supported"},
  };
  for (const Case& c : cases) {
    try {
      c.model.import();
      ADD_FAILURE() << "no error: " << c.part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(c.part), std::string::npos)
          << error.what() << "\nexpected: " << c.part;
    }
  }
}

// A record that has ONNX's name is read and written without a function: what it lists must be
// there.
TEST(OnnxConvert, RecordsNameOpsAndAttributesThatAreThere) {
  size_t named = 0;
  for (const Op* op : all_ops()) {
    if (op->onnx.empty()) {
      EXPECT_TRUE(op->onnx_attrs.empty()) << op->name;
      continue;
    }
    ++named;
    EXPECT_NE(find_converter(kOnnx, op->onnx), nullptr) << op->name;
    EXPECT_NE(find_write(*op), nullptr) << op->name;
    EXPECT_NO_THROW(check_types(op->onnx, {}, 1)) << op->name;
    for (const std::string& attr : op->onnx_attrs) {
      ASSERT_GE(op->attr_index(attr), 0) << op->name << " " << attr;
      const AttrKind kind = op->attrs[static_cast<size_t>(op->attr_index(attr))].kind;
      EXPECT_TRUE(kind == AttrKind::kInt || kind == AttrKind::kBool || kind == AttrKind::kFloat ||
                  kind == AttrKind::kString)
          << op->name << " " << attr;
    }
  }
  EXPECT_GT(named, 50u);
}

}  // namespace
}  // namespace anymps::onnx
