// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan and SequenceMap: names from outside, types that change, and their numbers.
#include <gtest/gtest.h>

#include "formats/onnx/model_builder.h"
#include "formats/onnx/read/import.h"
#include "formats/onnx/run.h"

namespace anymps::onnx {
namespace {

HostTensor number(int64_t value) { return HostTensor::of<int64_t>({}, {value}); }
HostTensor truth(char value) { return HostTensor(DType::kBool, {}, &value); }
ModelBuilder::Attr body(const char* name, const ModelBuilder& graph) {
  return ModelBuilder::graph_attr(name, graph);
}

std::string message_of(const ModelBuilder& model) {
  try {
    model.import();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OnnxControlFlow, BranchesSeeTheNamesAround) {
  auto graph =
      ModelBuilder()
          .input("c", {}, DataType::kBool)
          .input("x", {2})
          .input("z", {2})
          .floats("w", {2}, {10, 20})
          .node("Neg", {"x"}, {"n"})
          .node("If", {"c"}, {"y"},
                {body("then_branch", ModelBuilder().node("Add", {"n", "w"}, {"t"}).output("t")),
                 body("else_branch", ModelBuilder().output("z"))})
          .output("y")
          .import();
  verify(*graph);
  auto run = [&](char c) {
    return run_graph(*graph, {truth(c), floats({2}, {1, 2}), floats({2}, {5, 6})})[0]
        .values<float>();
  };
  EXPECT_EQ(run(1), (Floats{9, 18}));
  EXPECT_EQ(run(0), (Floats{5, 6}));
}

TEST(OnnxControlFlow, BranchesMayDifferInShape) {
  auto graph =
      ModelBuilder()
          .input("c", {}, DataType::kBool)
          .input("x", {2, 3})
          .ints("flat", {-1})
          .node("If", {"c"}, {"y"},
                {body("then_branch",
                      ModelBuilder().node("Reshape", {"x", "flat"}, {"t"}).output("t")),
                 body("else_branch", ModelBuilder().node("Identity", {"x"}, {"e"}).output("e"))})
          .node("Neg", {"y"}, {"r"})
          .output("r")
          .import();
  EXPECT_FALSE(graph->outputs()[0]->type.ranked);
  const Floats x = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(run_graph(*graph, {truth(1), floats({2, 3}, x)})[0].shape, (Shape{6}));
  EXPECT_EQ(run_graph(*graph, {truth(0), floats({2, 3}, x)})[0].shape, (Shape{2, 3}));
}

// Models hold branches for other shapes than theirs; taking one is an error.
TEST(OnnxControlFlow, ABranchThatDoesNotFitIsAnErrorOnlyWhenItIsTaken) {
  auto split =
      ModelBuilder().node("Split", {"x", "sizes"}, {"a", "b"}, {{"axis", 0}}, "cut").output("a");
  auto whole = ModelBuilder().node("Neg", {"x"}, {"n"}).output("n");
  auto model = [&](const ModelBuilder& yes, const ModelBuilder& no) {
    return ModelBuilder()
        .input("c", {}, DataType::kBool)
        .input("x", {5})
        .ints("sizes", {2, 2})
        .node("If", {"c"}, {"y"}, {body("then_branch", yes), body("else_branch", no)}, "choose")
        .output("y");
  };
  auto graph = model(split, whole).import();
  verify(*graph);
  const HostTensor x = floats({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(run_graph(*graph, {truth(0), x})[0].values<float>()[4], -5);
  try {
    run_graph(*graph, {truth(1), x});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("the branch that is taken is not valid"), std::string::npos) << message;
    EXPECT_NE(message.find("\"cut\" (Split)"), std::string::npos) << message;
  }
  EXPECT_NE(message_of(model(split, split)).find("(If): neither branch is valid: then_branch: "),
            std::string::npos);
}

// Fibonacci numbers, of which those beyond a limit are left out by an inner branch that reads names
// of the loop and of the graph.
TEST(OnnxControlFlow, BodiesNest) {
  auto inner = [](const char* what) {
    return ModelBuilder().node("Identity", {what}, {"picked"}).output("picked");
  };
  auto loop = ModelBuilder()
                  .input("i", {}, DataType::kInt64)
                  .input("go", {}, DataType::kBool)
                  .input("a", {})
                  .input("b", {})
                  .node("Add", {"a", "b"}, {"sum"})
                  .node("Less", {"sum", "limit"}, {"small"})
                  .node("If", {"small"}, {"scan"},
                        {body("then_branch", inner("sum")), body("else_branch", inner("limit"))})
                  .node("Identity", {"go"}, {"again"})
                  .node("Identity", {"b"}, {"next"})
                  .output("again")
                  .output("next")
                  .output("sum")
                  .output("scan");
  auto graph =
      ModelBuilder()
          .input("trips", {}, DataType::kInt64)
          .input("limit", {})
          .floats("one", {}, {1})
          .node("Loop", {"trips", "", "one", "one"}, {"a", "b", "all"}, {body("body", loop)}, "fib")
          .output("b")
          .output("all")
          .import();
  auto results = run_graph(*graph, {number(6), floats({}, {10})});
  EXPECT_EQ(results[0].values<float>(), (Floats{21}));
  EXPECT_EQ(results[1].values<float>(), (Floats{2, 3, 5, 8, 10, 10}));
  EXPECT_EQ(run_graph(*graph, {number(0), floats({}, {10})})[1].shape, (Shape{0}));
}

TEST(OnnxControlFlow, WhatALoopCarriesMayGrow) {
  auto loop = ModelBuilder()
                  .input("i", {}, DataType::kInt64)
                  .input("go", {}, DataType::kBool)
                  .input("x", {2})  // only true for the first round
                  .node("Concat", {"x", "x"}, {"xx"}, {{"axis", 0}})
                  .node("Size", {"xx"}, {"n"})
                  .node("Less", {"n", "limit"}, {"again"})
                  .output("again")
                  .output("xx");
  auto graph = ModelBuilder()
                   .input("x", {2})
                   .input("limit", {}, DataType::kInt64)
                   .node("Loop", {"", "", "x"}, {"y"}, {body("body", loop)})
                   .output("y")
                   .import();
  EXPECT_EQ(run_graph(*graph, {floats({2}, {1, 2}), number(10)})[0].shape, (Shape{16}));
}

ModelBuilder sum_body() {
  return ModelBuilder()
      .input("sum", {2})
      .input("x", {2})
      .node("Add", {"sum", "x"}, {"next"})
      .node("Identity", {"next"}, {"out"})
      .output("next")
      .output("out");
}

TEST(OnnxControlFlow, Scan) {
  auto graph = ModelBuilder(11)
                   .input("start", {2})
                   .input("x", {2, 3})
                   .node("Scan", {"start", "x"}, {"y", "z"},
                         {body("body", sum_body()),
                          {"num_scan_inputs", 1},
                          {"scan_input_axes", std::vector<int64_t>{1}},
                          {"scan_input_directions", std::vector<int64_t>{1}}})
                   .output("y")
                   .output("z")
                   .import();
  auto results = run_graph(*graph, {floats({2}, {0, 100}), floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(results[0].values<float>(), (Floats{6, 115}));
  EXPECT_EQ(results[1].values<float>(), (Floats{3, 106, 5, 111, 6, 115}));
}

TEST(OnnxControlFlow, ScanOfOpset8HasABatch) {
  auto graph = ModelBuilder(8)
                   .input("start", {2, 2})
                   .input("x", {2, 3, 2})
                   .node("Scan", {"", "start", "x"}, {"y", "z"},
                         {body("body", sum_body()), {"num_scan_inputs", 1}})
                   .output("y")
                   .output("z")
                   .import();
  auto results = run_graph(*graph, {floats({2, 2}, {0, 0, 100, 100}),
                                    floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1})});
  EXPECT_EQ(results[0].values<float>(), (Floats{9, 12, 103, 103}));
  EXPECT_EQ(results[1].shape, (Shape{2, 3, 2}));
  EXPECT_EQ(results[1].values<float>(), (Floats{1, 2, 4, 6, 9, 12, 101, 101, 102, 102, 103, 103}));
}

TEST(OnnxControlFlow, SequencesAreMappedAndJoined) {
  auto map = ModelBuilder()
                 .input("item", {"n"})
                 .input("f", {1})
                 .node("Mul", {"item", "f"}, {"scaled"})
                 .node("Add", {"scaled", "offset"}, {"moved"})
                 .output("moved");
  auto graph = ModelBuilder()
                   .input("x", {5})
                   .input("f", {1})
                   .input("offset", {1})
                   .ints("sizes", {2, 0, 3})
                   .node("SplitToSequence", {"x", "sizes"}, {"pieces"})
                   .node("SequenceMap", {"pieces", "f"}, {"mapped"}, {body("body", map)})
                   .node("ConcatFromSequence", {"mapped"}, {"y"}, {{"axis", 0}})
                   .node("SequenceLength", {"mapped"}, {"n"})
                   .output("y")
                   .output("n")
                   .import();
  auto results =
      run_graph(*graph, {floats({5}, {1, 2, 3, 4, 5}), floats({1}, {10}), floats({1}, {1})});
  EXPECT_EQ(results[0].values<float>(), (Floats{11, 21, 31, 41, 51}));
  EXPECT_EQ(results[1].values<int64_t>()[0], 3);
}

TEST(OnnxControlFlow, WhatIsMissingInABodyIsListed) {
  const std::string message =
      message_of(ModelBuilder()
                     .input("c", {}, DataType::kBool)
                     .node("If", {"c"}, {"y"},
                           {body("then_branch", ModelBuilder().node("Nope", {}, {"t"}).output("t")),
                            body("else_branch", ModelBuilder().node("Nix", {}, {"e"}).output("e"))})
                     .output("y"));
  EXPECT_NE(message.find("2 ops are not supported: Nix (node 0 \"\"); Nope (node 0 \"\")"),
            std::string::npos)
      << message;
}

TEST(OnnxControlFlow, BodiesAreChecked) {
  auto loop = [](const ModelBuilder& inside) {
    return message_of(ModelBuilder()
                          .input("x", {2})
                          .node("Loop", {"", "", "x"}, {"y"}, {body("body", inside)}, "l")
                          .output("y"));
  };
  EXPECT_NE(loop(ModelBuilder().input("i", {}, DataType::kInt64).output("i"))
                .find("node 0 \"l\" (Loop): the body has 1 inputs, must have 3"),
            std::string::npos);
  auto wrong = ModelBuilder()
                   .input("i", {}, DataType::kInt64)
                   .input("go", {}, DataType::kBool)
                   .input("v", {2})
                   .output("go")
                   .output("i");
  EXPECT_NE(loop(wrong).find("the body makes i64[] of a carried f32[2]"), std::string::npos)
      << loop(wrong);
  auto unknown = ModelBuilder()
                     .input("i", {}, DataType::kInt64)
                     .input("go", {}, DataType::kBool)
                     .input("v", {2})
                     .node("Add", {"v", "nowhere"}, {"r"}, {}, "a")
                     .output("go")
                     .output("r");
  EXPECT_NE(loop(unknown).find("node 0 \"l\" (Loop): node 0 \"a\" (Add): input \"nowhere\""),
            std::string::npos)
      << loop(unknown);
}

}  // namespace
}  // namespace anymps::onnx
