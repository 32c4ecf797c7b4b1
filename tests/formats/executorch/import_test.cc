// SPDX-License-Identifier: Apache-2.0
// Methods as graphs: views that are only places, buffers that last, branches, loops, shapes.
#include "formats/executorch/import.h"

#include <gtest/gtest.h>

#include "formats/executorch/program/program_text.h"
#include "formats/load.h"
#include "formats/onnx/run.h"
#include "support/executorch_file.h"

namespace anymps::executorch {
namespace {

using anymps::testing::add_program;
using anymps::testing::bytes_of;
using anymps::testing::constant;
using anymps::testing::planned;
using anymps::testing::write_program;

// The graph of a program that was written to a file and read again.
std::unique_ptr<Graph> import(const Program& program) {
  const std::string file = write_program(program);
  std::vector<std::byte> bytes(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  auto graph = load_graph(std::move(bytes), "test.pte");
  verify(*graph);
  return graph;
}

std::string import_error(const Program& program) {
  try {
    import(program);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExecutorchImport, AnOperator) {
  auto graph = import(add_program());
  EXPECT_EQ(graph->name, "forward");
  EXPECT_EQ(graph->inputs()[1]->name, "input1");
  EXPECT_EQ(graph->outputs()[0]->name, "output0");
  EXPECT_EQ(graph->outputs()[0]->producer->name, "aten::add.out_0");
  const auto results =
      run_graph(*graph, {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 3}, {1, 1, 1, 2, 2, 2})});
  EXPECT_EQ(results[0].values<float>(), (Floats{2, 3, 4, 6, 7, 8}));
}

// A view of static shape has no instruction: value 4 lies where the sum is.
TEST(ExecutorchImport, ViewsAreTensorsAtTheSamePlace) {
  Program program = add_program();
  Method& method = program.methods[0];
  method.values.emplace_back(planned(DType::kF32, {6}, 64));
  method.values.emplace_back(planned(DType::kF32, {6}, 128));
  method.outputs = {5};
  method.instructions.emplace_back(KernelCall{"aten::neg.out", {4, 5, 5}});
  const auto results = run_graph(
      *import(program), {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 3}, {0, 0, 0, 0, 0, 1})});
  EXPECT_EQ(results[0].shape, (Shape{6}));
  EXPECT_EQ(results[0].values<float>(), (Floats{-1, -2, -3, -4, -5, -7}));

  std::get<Tensor>(method.values[4]).sizes = {5};
  EXPECT_NE(
      import_error(program).find("value 4 lies in planned memory where value 3, of another size"),
      std::string::npos);
}

// Value 3 lies column by column where value 4 views it: its elements come in that order.
TEST(ExecutorchImport, ViewsOfAxesInAnotherOrder) {
  Program program = add_program();
  Method& method = program.methods[0];
  method.values.emplace_back(planned(DType::kF32, {6}, 64));
  method.values.emplace_back(planned(DType::kF32, {6}, 128));
  method.outputs = {5};
  method.instructions.emplace_back(KernelCall{"aten::neg.out", {4, 5, 5}});
  std::get<Tensor>(method.values[3]).dim_order = {1, 0};
  const auto run = [&] {
    return run_graph(*import(program),
                     {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 3}, {0, 0, 0, 0, 0, 0})})[0];
  };
  EXPECT_EQ(run().values<float>(), (Floats{-1, -4, -2, -5, -3, -6}));

  // Of the same sizes, but row by row.
  for (const size_t i : {4, 5}) {
    auto& tensor = std::get<Tensor>(method.values[i]);
    tensor.sizes = {2, 3};
    tensor.dim_order = {0, 1};
  }
  EXPECT_EQ(run().values<float>(), (Floats{-1, -4, -2, -5, -3, -6}));

  // In the same order: the same elements.
  std::get<Tensor>(method.values[4]).dim_order = {1, 0};
  EXPECT_EQ(run().values<float>(), (Floats{-1, -2, -3, -4, -5, -6}));

  // Both column by column: memory holds 1 4 2 5 3 6, which are two columns of three.
  std::get<Tensor>(method.values[4]).sizes = {3, 2};
  std::get<Tensor>(method.values[4]).dim_order = {1, 0};
  std::get<Tensor>(method.values[5]).sizes = {3, 2};
  EXPECT_EQ(run().values<float>(), (Floats{-1, -5, -4, -3, -2, -6}));
}

// A cache keeps what a run writes; the operator's result is a placeholder.
TEST(ExecutorchImport, CachesOfLanguageModels) {
  Program program;
  Method method;
  method.name = "forward";
  method.values = {planned(DType::kF32, {1, 1, 1, 2}, 0), planned(DType::kF32, {1, 3, 1, 2}, 64),
                   int64_t{1}, planned(DType::kF32, {1}, 128),
                   planned(DType::kF32, {1, 3, 1, 2}, 192)};
  method.inputs = {0};
  method.outputs = {4};
  method.instructions = {KernelCall{"llama::update_cache.out", {0, 1, 2, 3, 3}},
                         KernelCall{"aten::neg.out", {1, 4, 4}}};
  method.planned_bytes = {0, 256};
  program.methods.push_back(method);
  const auto results = run_graph(*import(program), {floats({1, 1, 1, 2}, {5, 6})});
  EXPECT_EQ(results[0].values<float>(), (Floats{0, 0, -5, -6, 0, 0}));
}

// Memory is used again: value 4 is written where input 0 was.
TEST(ExecutorchImport, PlacesAreReused) {
  Program program = add_program();
  Method& method = program.methods[0];
  method.values.emplace_back(planned(DType::kF32, {2, 3}, 0));
  method.outputs = {4};
  method.instructions.emplace_back(KernelCall{"aten::neg.out", {3, 4, 4}});
  const auto results = run_graph(
      *import(program), {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 3}, {1, 1, 1, 1, 1, 1})});
  EXPECT_EQ(results[0].values<float>(), (Floats{-2, -3, -4, -5, -6, -7}));
}

TEST(ExecutorchImport, ConstantsInAnyOrder) {
  Program program = add_program();
  Method& method = program.methods[0];
  const std::string data = bytes_of(Floats{10, 40, 20, 50, 30, 60});
  Tensor weights = constant(DType::kF32, {2, 3}, data);
  weights.dim_order = {1, 0};
  weights.name = "mod.weight";
  method.values[1] = weights;
  method.inputs = {0};
  auto graph = import(program);
  EXPECT_NE(graph->find_value("mod.weight"), nullptr);
  EXPECT_EQ(run_graph(*graph, {floats({2, 3}, {1, 2, 3, 4, 5, 6})})[0].values<float>(),
            (Floats{11, 22, 33, 44, 55, 66}));
}

// y = buffer + x; buffer = y.
Program counter(bool with_content) {
  static const std::string start = bytes_of(Floats{100, 200});
  Program program;
  Method method;
  method.name = "forward";
  Tensor buffer = planned(DType::kF32, {2}, 0);
  if (with_content) buffer.data = start;
  method.values = {buffer, planned(DType::kF32, {2}, 16), int64_t{1}, planned(DType::kF32, {2}, 32),
                   false};
  method.inputs = {1};
  method.outputs = {3};
  method.instructions = {KernelCall{"aten::add.out", {0, 1, 2, 3, 3}},
                         KernelCall{"aten::copy_", {0, 3, 4, 0}}};
  program.methods.push_back(std::move(method));
  return program;
}

TEST(ExecutorchImport, BuffersLastFromRunToRun) {
  for (const bool with_content : {true, false}) {
    auto graph = import(counter(with_content));
    auto device = Device::get("reference");
    Executable executable(device, *graph);
    const Floats ones{1, 2};
    for (int round = 1; round <= 3; ++round) {
      std::vector<anymps::Tensor> results;
      executable.run({device->from_host(TensorDesc(DType::kF32, {2}), ones.data())}, results);
      Floats values(2);
      device->to_host(results[0], values.data());
      const float first = with_content ? 100 : 0;
      EXPECT_EQ(values, (Floats{first + static_cast<float>(round),
                                2 * first + static_cast<float>(2 * round)}));
    }
  }
}

TEST(ExecutorchImport, ABufferThatNothingChangesIsAConstant) {
  Program program = counter(true);
  program.methods[0].instructions.pop_back();
  auto graph = import(program);
  for (const auto& node : graph->nodes()) EXPECT_FALSE(node->is("read_variable"));
  EXPECT_EQ(run_graph(*graph, {floats({2}, {1, 2})})[0].values<float>(), (Floats{101, 202}));
}

// torch.cond: the jump over "then", its end with a jump over "else", results moved to one value.
Program cond_program() {
  Program program;
  Method method;
  method.name = "forward";
  method.values = {planned(DType::kBool, {}, 0),
                   planned(DType::kF32, {2}, 16),
                   planned(DType::kF32, {2}, 32),
                   planned(DType::kF32, {2}, 48),
                   planned(DType::kF32, {2}, 64),
                   int64_t{1},
                   false,
                   planned(DType::kF32, {2}, 80)};
  method.inputs = {0, 1};
  method.outputs = {7};
  method.instructions = {JumpFalse{0, 4},
                         KernelCall{"aten::neg.out", {1, 2, 2}},
                         MoveCall{2, 4},
                         JumpFalse{6, 6},
                         KernelCall{"aten::add.out", {1, 1, 5, 3, 3}},
                         MoveCall{3, 4},
                         KernelCall{"aten::neg.out", {4, 7, 7}}};
  program.methods.push_back(std::move(method));
  return program;
}

TEST(ExecutorchImport, Branches) {
  auto graph = import(cond_program());
  for (const char flag : {1, 0}) {
    const auto results =
        run_graph(*graph, {HostTensor(DType::kBool, {}, &flag), floats({2}, {1, 2})});
    EXPECT_EQ(results[0].values<float>(), flag ? (Floats{1, 2}) : (Floats{-2, -4}));
  }
}

TEST(ExecutorchImport, ABranchThatIsKnownIsFollowed) {
  Program program = cond_program();
  program.methods[0].values[0] = true;
  program.methods[0].inputs = {1};
  auto graph = import(program);
  for (const auto& node : graph->nodes()) EXPECT_FALSE(node->is("if_else"));
  EXPECT_EQ(run_graph(*graph, {floats({2}, {1, 2})})[0].values<float>(), (Floats{1, 2}));
}

TEST(ExecutorchImport, BranchesInEachOtherAreBounded) {
  const auto nested = [](int depth) {
    Program program = cond_program();
    Method& method = program.methods[0];
    const KernelCall negate{"aten::neg.out", {1, 7, 7}};
    method.instructions = {negate};
    const int end = 2 * depth + 2;  // jumps in, the call, jumps out
    for (int i = 0; i < depth; ++i) method.instructions.emplace_back(JumpFalse{0, end - i});
    method.instructions.emplace_back(negate);
    for (int i = depth; i-- > 0;) method.instructions.emplace_back(JumpFalse{6, end - i});
    return program;
  };
  EXPECT_EQ(import(nested(3))->outputs().size(), 1u);
  EXPECT_NE(import_error(nested(65)).find("branches are nested more than 64 deep"),
            std::string::npos);
}

// A number that only one branch writes is the file's own in the other case.
TEST(ExecutorchImport, NumbersWrittenInABranch) {
  Program program = cond_program();
  Method& method = program.methods[0];
  method.values.emplace_back(int64_t{10});  // 8
  method.instructions[1] = KernelCall{"executorch_prim::add.Scalar", {8, 8, 8}};
  method.instructions[2] = MoveCall{1, 4};
  method.instructions[6] = KernelCall{"executorch_prim::add.Scalar", {8, 5, 8}};
  method.outputs = {8, 4};
  auto graph = import(program);
  for (const char flag : {1, 0}) {
    const auto results =
        run_graph(*graph, {HostTensor(DType::kBool, {}, &flag), floats({2}, {1, 2})});
    EXPECT_EQ(results[0].values<int64_t>(), (std::vector<int64_t>{flag ? 21 : 11}));
    EXPECT_EQ(results[1].values<float>(), flag ? (Floats{1, 2}) : (Floats{2, 4}));
  }
}

TEST(ExecutorchImport, ATensorOfOneBranchCannotBeReadAfterIt) {
  Program program = cond_program();
  program.methods[0].instructions[6] = KernelCall{"aten::neg.out", {2, 7, 7}};  // of "then" only
  EXPECT_NE(import_error(program).find("value 2 is read, but nothing"), std::string::npos)
      << import_error(program);
}

// Buffers that a branch changes last, too.
TEST(ExecutorchImport, BuffersWrittenInABranch) {
  Program program = cond_program();
  Method& method = program.methods[0];
  method.values.emplace_back(planned(DType::kF32, {2}, 96));  // 8, of zeros
  method.instructions = {JumpFalse{0, 4}, KernelCall{"aten::add.out", {8, 1, 5, 2, 2}},
                         KernelCall{"aten::copy_", {8, 2, 6, 8}}, JumpFalse{6, 4},
                         KernelCall{"aten::neg.out", {8, 7, 7}}};
  auto graph = import(program);
  auto device = Device::get("reference");
  Executable executable(device, *graph);
  const Floats x{1, 2};
  float count = 0;
  for (const char flag : {1, 0, 1, 1}) {
    std::vector<anymps::Tensor> results;
    executable.run({device->from_host(TensorDesc(DType::kBool, {}), &flag),
                    device->from_host(TensorDesc(DType::kF32, {2}), x.data())},
                   results);
    count += static_cast<float>(flag);
    Floats values(2);
    device->to_host(results[0], values.data());
    EXPECT_EQ(values, (Floats{-count, -2 * count}));
  }
}

TEST(ExecutorchImport, JumpsOutOfABranchAndBackAreRefused) {
  Program program = cond_program();
  program.methods[0].instructions[2] = JumpFalse{0, 0};
  EXPECT_NE(import_error(program).find("out of the branch that it is in"), std::string::npos);
  program.methods[0].instructions = {KernelCall{"aten::neg.out", {1, 7, 7}}, JumpFalse{0, 0}};
  EXPECT_NE(import_error(program).find("a loop whose number of rounds is known only when it runs"),
            std::string::npos);
}

// torch.map over an axis of dynamic extent: y[i] = -x[i].
Program map_program() {
  Program program;
  Method method;
  method.name = "forward";
  method.values = {planned(DType::kF32, {4, 2}, 0),
                   int64_t{0},
                   int64_t{0},
                   int64_t{0},
                   planned(DType::kF32, {2}, 64),
                   planned(DType::kF32, {4, 2}, 128),
                   int64_t{1},
                   false,
                   planned(DType::kF32, {2}, 96)};
  for (const size_t i : {0, 5})
    std::get<Tensor>(method.values[i]).dynamism = Tensor::Dynamism::kBound;
  method.inputs = {0};
  method.outputs = {5};
  method.instructions = {KernelCall{"aten::sym_size.int", {0, 1, 3}},
                         KernelCall{"aten::select_copy.int_out", {0, 1, 2, 4, 4}},
                         KernelCall{"aten::neg.out", {4, 8, 8}},
                         KernelCall{"executorch_prim::et_copy_index.tensor", {5, 8, 2}},
                         KernelCall{"executorch_prim::add.Scalar", {2, 6, 2}},
                         KernelCall{"executorch_prim::eq.Scalar", {2, 3, 7}},
                         JumpFalse{7, 1},
                         KernelCall{"executorch_prim::sub.Scalar", {2, 3, 2}}};
  method.planned_bytes = {0, 192};
  program.methods.push_back(std::move(method));
  return program;
}

TEST(ExecutorchImport, LoopsOfAsManyRoundsAsTheDataSays) {
  auto graph = import(map_program());
  for (const int64_t rows : {1, 3, 4}) {
    Floats x, y;
    for (int64_t i = 0; i < 2 * rows; ++i) {
      x.push_back(static_cast<float>(i + 1));
      y.push_back(-static_cast<float>(i + 1));
    }
    const auto results = run_graph(*graph, {floats({rows, 2}, x)});
    EXPECT_EQ(results[0].shape, (Shape{rows, 2}));
    EXPECT_EQ(results[0].values<float>(), y);
  }
}

TEST(ExecutorchImport, LoopsOfOtherFormsAreRefused) {
  const auto refused = [](const char* says, const auto& change) {
    Program program = map_program();
    change(program.methods[0]);
    const std::string message = import_error(program);
    EXPECT_NE(message.find(says), std::string::npos) << says << ": " << message;
  };
  const char* unknown = "a loop whose number of rounds is known only when it runs";
  refused(unknown, [](Method& m) { m.values[6] = int64_t{2}; });
  refused("row 1 is written, but the rows before it were not",
          [](Method& m) { std::swap(m.instructions[4], m.instructions[2]); });
  refused(unknown, [](Method& m) {
    m.instructions[5] = KernelCall{"executorch_prim::lt.Scalar", {3, 2, 7}};
  });
  // The input's place is used within the round.
  refused("value 0 is read in a loop that writes another one to its place", [](Method& m) {
    m.values.emplace_back(planned(DType::kF32, {2}, 0));
    m.instructions[2] = KernelCall{"aten::neg.out", {4, 9, 9}};
    m.instructions[3] = KernelCall{"executorch_prim::et_copy_index.tensor", {5, 9, 2}};
  });
}

TEST(ExecutorchImport, DynamicInputsHaveSymbols) {
  Program program = add_program();
  for (const size_t i : {0, 1, 3}) {
    auto& tensor = std::get<Tensor>(program.methods[0].values[i]);
    tensor.sizes = {4, 3, 1};
    tensor.dim_order = {0, 1, 2};
    tensor.dynamism = Tensor::Dynamism::kBound;
    tensor.offset = 64 * i;
  }
  auto graph = import(program);
  EXPECT_EQ(to_string(graph->inputs()[0]->type), "f32[input0.0<=4, input0.1<=3, 1]");
  const auto results =
      run_graph(*graph, {floats({2, 2, 1}, {1, 2, 3, 4}), floats({2, 2, 1}, {5, 6, 7, 8})});
  EXPECT_EQ(results[0].shape, (Shape{2, 2, 1}));
  EXPECT_EQ(results[0].values<float>(), (Floats{6, 8, 10, 12}));
  try {
    const Floats zeros(16);
    run_graph(*graph, {floats({4, 4, 1}, zeros), floats({4, 4, 1}, zeros)});
    FAIL() << "a feed above the bound was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[run] input 'input0' has extent 4 on axis 1, but at most 3 is allowed");
  }
  // A tensor without a bound says how large it is at first.
  for (const size_t i : {0, 1, 3})
    std::get<Tensor>(program.methods[0].values[i]).dynamism = Tensor::Dynamism::kUnbound;
  graph = import(program);
  const Floats zeros(16);
  EXPECT_EQ(run_graph(*graph, {floats({4, 4, 1}, zeros), floats({4, 4, 1}, zeros)})[0].shape,
            (Shape{4, 4, 1}));
}

TEST(ExecutorchImport, NumbersAmongOutputs) {
  Program program = add_program();
  program.methods[0].values.emplace_back(2.5);
  program.methods[0].values.emplace_back(None{});
  program.methods[0].outputs = {2, 4, 5, 3, 0};
  const auto results = run_graph(
      *import(program), {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 3}, {0, 0, 0, 0, 0, 0})});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].values<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_EQ(results[1].values<double>(), (std::vector<double>{2.5}));
  EXPECT_EQ(results[2].values<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(results[3].values<float>(), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST(ExecutorchImport, MethodsOfAFile) {
  Program program = add_program();
  program.methods.push_back(program.methods[0]);
  program.methods[0].name = "encode";
  program.methods[1].name = "decode";
  EXPECT_NE(import_error(program).find("there is no method \"forward\"; it has: encode, decode"),
            std::string::npos);
}

}  // namespace
}  // namespace anymps::executorch
