// SPDX-License-Identifier: Apache-2.0
// The walk over the graph: names, order, functions, branches and what is refused.
#include "formats/onnx/read/import.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/mapped_file.h"
#include "formats/load.h"
#include "formats/onnx/model_builder.h"

namespace anymps::onnx {
namespace {

using Attr = ModelBuilder::Attr;

void expect_error(const ModelBuilder& model, Code code, const std::string& part) {
  try {
    model.import();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(anymps::name(error.code()), std::string(anymps::name(code))) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what() << "\nexpected: " << part;
    EXPECT_EQ(std::string(error.what()).rfind("[onnx] m.onnx: ", 0), 0u) << error.what();
  }
}

std::vector<std::string> ops(const anymps::Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.push_back(node->op->name);
  return names;
}

using Ops = std::vector<std::string>;

TEST(OnnxImport, InputsKeepTheirNamesAndSymbols) {
  auto graph = ModelBuilder()
                   .input("x", {"N", 3, "", "?"})
                   .node("Relu", {"x"}, {"y"})
                   .output("y", DataType::kFloat)
                   .import();
  ASSERT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(to_string(graph->inputs()[0]->type), "f32[N, 3, x.2, x.3]");
  ASSERT_EQ(graph->outputs().size(), 1u);
  EXPECT_EQ(graph->outputs()[0]->name, "y");
  verify(*graph);
}

TEST(OnnxImport, InitializersAreConstantsEvenWhereTheyAreListedAsInputs) {
  auto graph = ModelBuilder()
                   .input("x", {2})
                   .input("w", {2})
                   .floats("w", {2}, {1, 2})
                   .floats("unused", {1}, {0})
                   .node("Add", {"x", "w"}, {"y"})
                   .output("y")
                   .import();
  EXPECT_EQ(graph->inputs().size(), 1u);
  const Value* w = graph->nodes().front()->inputs[1];
  ASSERT_TRUE(w->is_constant());
  EXPECT_EQ(w->name, "w");
  EXPECT_EQ(graph->find_value("unused"), nullptr);
}

// y = reshape(x + w, s): w and s are inputs with a default.
ModelBuilder with_defaults() {
  return ModelBuilder()
      .input("w", {"K"})
      .input("x", {4})
      .input("s", {2}, DataType::kInt64)
      .floats("w", {4}, {1, 2, 3, 4})
      .ints("s", {2, 2})
      .node("Add", {"x", "w"}, {"a"})
      .node("Reshape", {"a", "s"}, {"y"})
      .output("y");
}

TEST(OnnxImport, InputsWithADefaultAreConstantsThatTheImporterNames) {
  DefaultInputs defaults;
  auto graph = with_defaults().import(&defaults);
  ASSERT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(graph->inputs()[0]->name, "x");
  EXPECT_EQ(to_string(graph->outputs()[0]->type), "f32[2, 2]");
  ASSERT_EQ(defaults.found.size(), 2u);
  EXPECT_EQ(defaults.found[0].name, "w");
  EXPECT_EQ(to_string(defaults.found[0].type), "f32[K]");
  EXPECT_EQ(defaults.found[1].name, "s");
  EXPECT_EQ(defaults.found[1].dtype(), DType::kI64);
}

TEST(OnnxImport, AnInputWithADefaultThatIsWantedIsAnInput) {
  DefaultInputs defaults;
  defaults.wanted = {"w", "x"};  // x is an input anyway
  auto graph = with_defaults().import(&defaults);
  ASSERT_EQ(graph->inputs().size(), 2u);
  EXPECT_EQ(graph->inputs()[0]->name, "w");  // the file's order
  EXPECT_EQ(graph->inputs()[1]->name, "x");
  EXPECT_EQ(to_string(graph->outputs()[0]->type), "f32[2, 2]");
  ASSERT_EQ(defaults.found.size(), 1u);
  EXPECT_EQ(defaults.found[0].name, "s");
  // Nothing of the shape's elements may be left in the graph.
  DefaultInputs shape;
  shape.wanted = {"s"};
  graph = with_defaults().import(&shape);
  ASSERT_EQ(graph->inputs().size(), 2u);
  EXPECT_FALSE(graph->outputs()[0]->type.static_shape());
  verify(*graph);
}

TEST(OnnxImport, WhatIsNoInputCannotBeWanted) {
  for (const char* name : {"a", "y", "nobody", ""}) {
    DefaultInputs defaults;
    defaults.wanted = {name};
    try {
      with_defaults().import(&defaults);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kNotFound);
      EXPECT_NE(std::string(error.what()).find("with a default: s, w"), std::string::npos)
          << error.what();
    }
  }
}

TEST(OnnxImport, WeightsStayInTheFile) {
  // 64 KB: large enough not to be copied. The constant refers to the bytes of the model or, where
  // they are not aligned, makes its copy only while somebody holds it.
  auto graph = ModelBuilder()
                   .input("x", {1})
                   .zeros("w", {16384})
                   .node("Add", {"x", "w"}, {"y"})
                   .output("y")
                   .import();
  const ConstantPtr constant = graph->nodes().front()->inputs[1]->constant;
  ASSERT_NE(constant, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(constant->data().get()) % 16, 0u);
}

TEST(OnnxImport, AFileIsMappedOnce) {
  const std::string path = ::testing::TempDir() + fmt::format("anymps_{}_once.onnx", ::getpid());
  std::ofstream(path, std::ios::binary)
      << ModelBuilder().input("x", {1}).node("Relu", {"x"}, {"y"}).output("y").bytes();
  const OpenedFiles opened;
  EXPECT_EQ(ops(*load_graph(path)), Ops{"relu"});
  EXPECT_EQ(opened.all().size(), 1u);
  std::filesystem::remove(path);
}

TEST(OnnxImport, NodesNeedNotBeSorted) {
  auto graph = ModelBuilder()
                   .input("x", {2})
                   .node("Relu", {"a"}, {"y"})
                   .node("Neg", {"x"}, {"a"})
                   .output("y")
                   .import();
  EXPECT_EQ(ops(*graph), (Ops{"neg", "relu"}));
}

TEST(OnnxImport, DeadNodesAreDropped) {
  auto graph = ModelBuilder()
                   .input("x", {2})
                   .node("Relu", {"x"}, {"y"})
                   .node("Neg", {"x"}, {"z"})
                   .output("y")
                   .import();
  EXPECT_EQ(ops(*graph), Ops{"relu"});
}

TEST(OnnxImport, EachOutputIsAValueOfItsOwn) {
  auto graph = ModelBuilder()
                   .input("x", {2})
                   .floats("w", {1}, {3})
                   .node("Relu", {"x"}, {"y"}, {}, "z")
                   .node("Identity", {"y"}, {"z"})
                   .output("y")
                   .output("z")
                   .output("w")
                   .import();
  ASSERT_EQ(graph->outputs().size(), 3u);
  EXPECT_EQ(graph->outputs()[0]->name, "y");
  EXPECT_EQ(graph->outputs()[1]->name, "z");
  EXPECT_EQ(graph->outputs()[2]->name, "w");
  verify(*graph);
}

TEST(OnnxImport, FunctionsAreInlined) {
  auto graph =
      ModelBuilder(17)
          .import_opset("my", 1)
          .input("x", {2, 3})
          .function("my", "Twice", {"a", "b"}, {"r"},
                    {ModelBuilder::node_bytes("Add", {"a", "a"}, {"s"}),
                     ModelBuilder::node_bytes(
                         "Concat", {"s", "s"}, {"r"},
                         {ModelBuilder::ref_attr("axis", "along", Attribute::Type::kInt)})})
          .node("Twice", {"x"}, {"y"}, {{"along", 1}}, "", "my")
          .output("y")
          .import();
  EXPECT_EQ(ops(*graph), (Ops{"add", "concat"}));
  EXPECT_EQ(to_string(graph->outputs()[0]->type), "f32[2, 6]");
}

TEST(OnnxImport, SparseInitializersBecomeDense) {
  auto model = [](const std::vector<int64_t>& indices, const std::vector<int64_t>& dims) {
    return ModelBuilder()
        .input("x", {2, 3})
        .sparse("w", {2, 3}, {7, 8}, indices, dims)
        .node("Add", {"x", "w"}, {"y"})
        .output("y");
  };
  for (const auto& graph : {model({1, 5}, {2}).import(), model({0, 1, 1, 2}, {2, 2}).import()}) {
    const ConstantPtr w = graph->nodes().front()->inputs[1]->constant;
    ASSERT_NE(w, nullptr);
    const auto data = w->data();
    const auto* elements = reinterpret_cast<const float*>(data.get());
    EXPECT_EQ(std::vector<float>(elements, elements + 6), (std::vector<float>{0, 7, 0, 0, 0, 8}));
  }
  expect_error(model({1, 6}, {2}), Code::kInvalidArgument,
               "initializer \"w\": index 6 is out of range for 6 elements");
  expect_error(model({0, 3, 0, 0}, {2, 2}), Code::kInvalidArgument,
               "index 3 is out of range for size 3");
  expect_error(model({0}, {1}), Code::kInvalidArgument, "1 indices for 2 values");
}

TEST(OnnxImport, RecursiveFunctionsAreRefused) {
  expect_error(ModelBuilder(17)
                   .import_opset("my", 1)
                   .input("x", {2})
                   .function("my", "F", {"a"}, {"r"},
                             {ModelBuilder::node_bytes("F", {"a"}, {"r"}, {}, "", "my")})
                   .node("F", {"x"}, {"y"}, {}, "call", "my")
                   .output("y"),
               Code::kInvalidArgument, "node 0 \"call\" (F): node 0 \"\" (F): node 0");
}

TEST(OnnxImport, ABranchWithAConstantConditionIsInlined) {
  auto branch = [](const char* op) { return ModelBuilder().node(op, {"x"}, {"r"}).output("r"); };
  auto model = [&](char condition) {
    return ModelBuilder()
        .input("x", {2})
        .input("c", {}, DataType::kBool)
        .tensor("yes", {}, DataType::kBool, std::string(1, condition))
        .node("If", {"yes"}, {"y"},
              {ModelBuilder::graph_attr("then_branch", branch("Relu")),
               ModelBuilder::graph_attr("else_branch", branch("Neg"))})
        .output("y")
        .import();
  };
  EXPECT_EQ(ops(*model(1)), Ops{"relu"});
  EXPECT_EQ(ops(*model(0)), Ops{"neg"});
}

TEST(OnnxImport, UnsupportedOpsAreListedTogether) {
  expect_error(ModelBuilder()
                   .import_opset("com.example", 1)
                   .input("x", {2})
                   .node("Foo", {"x"}, {"a"}, {}, "first")
                   .node("Relu", {"a"}, {"b"})
                   .node("Bar", {"b"}, {"c"}, {}, "second", "com.example")
                   .node("Foo", {"c"}, {"y"}, {}, "third")
                   .output("y"),
               Code::kUnsupported,
               "2 ops are not supported: Foo (node 0 \"first\", node 3 \"third\"); com.example.Bar "
               "(node 2 \"second\")");
}

TEST(OnnxImport, BadStructureNamesTheNode) {
  auto model = [] { return ModelBuilder().input("x", {2}).output("y"); };
  expect_error(model()
                   .node("Add", {"x", "b"}, {"a"}, {}, "n0")
                   .node("Relu", {"a"}, {"b"}, {}, "n1")
                   .node("Neg", {"b"}, {"y"}),
               Code::kInvalidArgument, "is part of a cycle: ");
  expect_error(model().node("Relu", {"y"}, {"y"}, {}, "self"), Code::kInvalidArgument,
               "node 0 \"self\" (Relu): is part of a cycle: \"y\" -> \"y\"");
  expect_error(model().node("Relu", {"w"}, {"y"}, {}, "r"), Code::kInvalidArgument,
               "node 0 \"r\" (Relu): input \"w\" is made by no node");
  expect_error(model().node("Relu", {"x"}, {"y"}, {}, "a").node("Neg", {"x"}, {"y"}, {}, "b"),
               Code::kInvalidArgument,
               "node 1 \"b\" (Neg): output \"y\" is also made by node 0 \"a\" (Relu)");
  expect_error(model().node("Relu", {"x"}, {"x"}), Code::kInvalidArgument,
               "output \"x\" is also an input or an initializer");
  expect_error(model().node("Relu", {"x"}, {"z"}), Code::kInvalidArgument,
               "output \"y\" is made by no node");
  expect_error(model().input("x", {2}).node("Relu", {"x"}, {"y"}), Code::kInvalidArgument,
               "input \"x\": there are two of this name");
  expect_error(ModelBuilder().input("x", {2}).node("Relu", {"x"}, {"y"}), Code::kInvalidArgument,
               "the graph has no outputs");
  expect_error(
      ModelBuilder().input("x", {2}, DataType::kFloat6E2M3).node("Relu", {"x"}, {"y"}).output("y"),
      Code::kUnsupported, "input \"x\": element type FLOAT6E2M3 is not supported");
  expect_error(
      ModelBuilder().input("x", {2}).node("Relu", {"x"}, {"y"}).output("y", DataType::kInt64),
      Code::kInvalidArgument, "output \"y\" is f32, but the file says INT64");
}

TEST(OnnxImport, BadNodesAreNamed) {
  auto model = [] { return ModelBuilder().input("x", {2, 3}).output("y"); };
  expect_error(model().node("Concat", {"x", "x"}, {"y"}, {}, "c"), Code::kInvalidArgument,
               "node 0 \"c\" (Concat): attribute 'axis' is missing");
  expect_error(model().node("Concat", {"x", "x"}, {"y"}, {{"axis", "one"}}, "c"),
               Code::kInvalidArgument,
               "node 0 \"c\" (Concat): attribute 'axis' is STRING, must be INT");
  expect_error(model().node("Concat", {"x", "x"}, {"y"}, {{"axis", 5}}, "c"),
               Code::kInvalidArgument, "node 0 \"c\" (Concat): ");
  expect_error(model().node("Relu", {"x"}, {"y"}, {{"slope", 0.5f}}, "r"), Code::kUnsupported,
               "node 0 \"r\" (Relu): attribute 'slope' is not supported");
  expect_error(model().node("Softmax", {"x", "x"}, {"y"}, {}, "s"), Code::kUnsupported,
               "node 0 \"s\" (Softmax): input 1 (\"x\") is not supported");
  expect_error(model().node("Add", {"x", ""}, {"y"}, {}, "a"), Code::kInvalidArgument,
               "node 0 \"a\" (Add): input 1 is missing");
}

}  // namespace
}  // namespace anymps::onnx
