// SPDX-License-Identifier: Apache-2.0
// Payloads as a whole: how constants, types and shapes are read where the exporter has ways of its
// own, and what is said about files that nobody should have written.
#include "formats/executorch/payload/payload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/mapped_file.h"
#include "formats/executorch/payload_builder.h"
#include "formats/executorch/program/bundle.h"
#include "formats/onnx/run.h"

namespace anymps::executorch {
namespace {

using List = PayloadBuilder::List;

Floats run(const PayloadBuilder& payload, const std::vector<HostTensor>& feeds) {
  return run_graph(*payload.import(), feeds).at(0).values<float>();
}

void expect_error(const PayloadBuilder& payload, Code code, const std::string& text) {
  try {
    payload.import();
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "got: " << error.what() << "\nexpected: " << text;
  }
}

// x + y, where y is what the test is about.
PayloadBuilder sum_with(DType dtype, const List& dims, int (*make)(PayloadBuilder&)) {
  PayloadBuilder payload;
  const int x = payload.input(dtype, dims), y = make(payload), z = payload.value(dtype, dims);
  payload.node("MPSAdd", {{0, x}, {1, y}, {2, z}, {3, 1.f}});
  payload.output(z);
  return payload;
}

TEST(Payload, EveryKindHasAConverterAndANameOfItsOwn) {
  std::set<std::string> labels;
  for (const std::string_view kind : node_kinds()) {
    EXPECT_NE(find_node(kind), nullptr) << kind;
    EXPECT_TRUE(labels.insert(label_of(kind)).second) << kind;
  }
  EXPECT_EQ(node_kinds().size(), 90u);
  EXPECT_EQ(label_of("MPSMaxPool2DWithIndices"), "max_pool2d_with_indices");
  EXPECT_EQ(label_of("MPSLeakyReLU"), "leaky_relu");
}

TEST(Payload, ConstantsInTheSegmentAndInPlace) {
  for (const bool inlined : {false, true}) {
    PayloadBuilder payload;
    payload.inline_constants = inlined;
    payload.header = !inlined;
    const int x = payload.input(F32, {2, 2}), z = payload.value(F32, {2, 2});
    payload.constant<float>(F32, {3}, {7, 7, 7});
    const int w = payload.constant<float>(F32, {2}, {10, 20});
    payload.node("MPSMul", {{0, x}, {1, w}, {2, z}});
    payload.output(z);
    EXPECT_EQ(run(payload, {HostTensor::of<float>({2, 2}, {1, 2, 3, 4})}),
              (Floats{10, 40, 30, 80}));
  }
}

TEST(Payload, NodesBearTheNamesOfTheirKind) {
  PayloadBuilder payload = sum_with(F32, {3}, [](PayloadBuilder& p) { return p.input(F32, {3}); });
  auto graph = payload.import();
  ASSERT_EQ(graph->node_count(), 1u);
  EXPECT_EQ(graph->node_list()[0]->name, "delegate0/add_0");
}

// A Python number has the bytes of an int64 or a float32, whatever its dtype is said to be.
TEST(Payload, PythonNumbers) {
  PayloadBuilder whole =
      sum_with(I32, {2}, [](PayloadBuilder& p) { return p.constant<int64_t>(I32, {1}, {-3}); });
  EXPECT_EQ(run_graph(*whole.import(), {HostTensor::of<int32_t>({2}, {1, 2})})[0].values<int32_t>(),
            (std::vector<int32_t>{-2, -1}));
  PayloadBuilder half =
      sum_with(F32, {2}, [](PayloadBuilder& p) { return p.constant<int64_t>(F16, {1}, {2}); });
  EXPECT_EQ(run(half, {HostTensor::of<float>({2}, {1, 2})}), (Floats{3, 4}));
  PayloadBuilder wide =
      sum_with(F32, {2}, [](PayloadBuilder& p) { return p.constant<double>(F32, {1}, {0.5}); });
  EXPECT_EQ(run(wide, {HostTensor::of<float>({2}, {1, 2})}), (Floats{1.5, 2.5}));
  // The result is a float where the number is one.
  PayloadBuilder mixed;
  const int x = mixed.input(I64, {2}), z = mixed.value(F32, {2});
  const int y = mixed.constant<float>(I64, {1}, {1.5});
  mixed.node("MPSMul", {{0, x}, {1, y}, {2, z}});
  mixed.output(z);
  EXPECT_EQ(run(mixed, {HostTensor::of<int64_t>({2}, {3, -4})}), (Floats{4.5, -6}));
}

// The exporter uses one constant for 2 and 2.0; the declared result tells which it was.
TEST(Payload, AnIntegerStaysOneWhereTheNumberWasSharedWithFloats) {
  PayloadBuilder payload;
  const int x = payload.input(I64, {2}), z = payload.value(I64, {2});
  const int two = payload.constant<float>(F32, {1}, {2});
  payload.node("MPSMul", {{0, x}, {1, two}, {2, z}});
  payload.output(z);
  const int64_t large = (int64_t{1} << 40) + 1;
  EXPECT_EQ(run_graph(*payload.import(), {HostTensor::of<int64_t>({2}, {large, -1})})[0]
                .values<int64_t>(),
            (std::vector<int64_t>{2 * large, -2}));
}

// Float64 constants are declared float32.
TEST(Payload, Float64Constants) {
  PayloadBuilder payload = sum_with(F32, {3}, [](PayloadBuilder& p) {
    return p.constant<double>(F32, {3}, {1, 2, 3});
  });
  EXPECT_EQ(
      run_graph(*payload.import(), {HostTensor::of<float>({3}, {1, 1, 1})})[0].values<double>(),
      (std::vector<double>{2, 3, 4}));
}

TEST(Payload, HalfPrecisionCastsInPlace) {
  PayloadBuilder payload;
  const int x = payload.input(F32, {2}), z = payload.value(F32, {2});
  const int w = payload.constant<Half>(F16, {2}, {Half(0.5f), Half(3.f)});
  payload.node("MPSCast", {{0, x}, {1, x}, {2, F16}});
  payload.node("MPSMul", {{0, x}, {1, w}, {2, z}});
  payload.node("MPSCast", {{0, z}, {1, z}, {2, F32}});
  payload.output(z);
  auto graph = payload.import();
  for (const Node* node : graph->node_list())
    if (node->is("mul")) {
      EXPECT_EQ(node->output()->dtype(), F16);
    }
  EXPECT_EQ(run(payload, {HostTensor::of<float>({2}, {1, 1.0001f})}), (Floats{0.5, 3}));
}

// A fill is float32 in half precision too. It takes the type of what it meets, unless it is too
// large for that.
TEST(Payload, NumbersInHalfPrecision) {
  for (const auto& [number, type] : {std::pair(-INFINITY, F16), std::pair(-1e9f, F32)}) {
    PayloadBuilder payload;
    const int x = payload.input(F16, {2}), mask = payload.input(DType::kBool, {2});
    const int fill = payload.value(F32, {1}), z = payload.value(F32, {2});
    payload.node("MPSFull", {{1, fill}, {2, List{1}}, {3, number}, {4, F32}});
    payload.node("MPSWhere", {{0, mask}, {1, fill}, {2, x}, {3, z}});
    payload.output(z);
    auto graph = payload.import();
    for (const Node* node : graph->node_list())
      if (node->is("where")) {
        EXPECT_EQ(node->output()->dtype(), type);
      }
    EXPECT_EQ(graph->outputs()[0]->dtype(), F32);
  }
}

// scalar_tensor makes a fill of shape [1] for a value that is declared a scalar.
TEST(Payload, ScalarsThatComeAsVectorsOfOne) {
  PayloadBuilder payload;
  const int x = payload.input(F32, {}), fill = payload.value(F32, {}), z = payload.value(F32, {});
  payload.node("MPSFull", {{1, fill}, {2, List{1}}, {3, 2.f}, {4, F32}});
  payload.node("MPSMul", {{0, x}, {1, fill}, {2, z}});
  payload.output(z);
  const auto result = run_graph(*payload.import(), {HostTensor::of<float>({}, {4})}).at(0);
  EXPECT_EQ(result.shape, Shape{});
  EXPECT_EQ(result.values<float>(), Floats{8});
}

// The wheel declares the largest shapes of a dynamic module, but the example's of results in a
// list.
TEST(Payload, ResultsMayBeLargerThanDeclared) {
  PayloadBuilder payload;
  const int x = payload.input(F32, {4, 1}), y = payload.value(F32, {2, 1}),
            z = payload.value(F32, {4, 1});
  payload.node("MPSNeg", {{0, x}, {1, y}});
  payload.node("MPSNeg", {{0, y}, {1, z}});
  payload.output(z);
  const auto result = run_graph(*payload.import(), {HostTensor::of<float>({4, 1}, {1, 2, 3, 4})});
  EXPECT_EQ(result.at(0).values<float>(), (Floats{1, 2, 3, 4}));
}

TEST(Payload, OutputsThatAreInputsOrTheSame) {
  PayloadBuilder payload;
  const int x = payload.input(F32, {2}), z = payload.value(F32, {2});
  payload.node("MPSNeg", {{0, x}, {1, z}});
  for (const int id : {z, x, z}) payload.output(id);
  const auto results = run_graph(*payload.import(), {HostTensor::of<float>({2}, {1, 2})});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].values<float>(), (Floats{-1, -2}));
  EXPECT_EQ(results[1].values<float>(), (Floats{1, 2}));
  EXPECT_EQ(results[2].values<float>(), (Floats{-1, -2}));
}

// In a program with symbolic shapes the declared extents are upper bounds.
TEST(Payload, SymbolicInputs) {
  PayloadBuilder payload;
  const int x = payload.input(F32, {8, 3}), y = payload.value(F32, {8, 3}),
            z = payload.value(F32, {24});
  payload.node("MPSNeg", {{0, x}, {1, y}});
  payload.node("MPSView", {{0, y}, {1, z}, {2, 1}, {3, List{-1}}});
  payload.output(z);
  auto owner = std::make_shared<const std::string>(payload.bytes());
  Graph graph;
  Value* input = graph.input("x", F32, {Dim::symbol("N"), 3});
  const Values outputs = add_payload(graph, {*owner, owner, false, "test"}, {input}, "delegate1");
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0]->producer->name, "delegate1/view_1");
  EXPECT_EQ(outputs[0]->shape().size(), 1u);
  graph.set_outputs(outputs);
  EXPECT_EQ(run_graph(graph, {HostTensor::of<float>({1, 3}, {1, 2, 3})})[0].values<float>(),
            (Floats{-1, -2, -3}));
}

TEST(Payload, ErrorsNameTableAndField) {
  const auto add = [](int a, int b, int out) {
    return PayloadBuilder::Fields{{0, a}, {1, b}, {2, out}, {3, 1.f}};
  };
  const auto base = [] {
    PayloadBuilder payload;
    payload.input(F32, {2});
    payload.value(F32, {2});
    payload.constant<float>(F32, {2}, {1, 2});
    return payload;
  };
  PayloadBuilder payload = base();
  payload.node("MPSAdd", add(0, 7, 1));
  expect_error(payload, Code::kCorrupt, "test: MPSAdd[0].input2_id: there is no value 7, only 3");
  payload = base();
  payload.node("MPSAdd", add(0, -1, 1));
  expect_error(payload, Code::kCorrupt, "MPSAdd[0].input2_id: there is no value -1");
  payload = base();
  payload.node("MPSAdd", add(0, 1, 1));
  expect_error(payload, Code::kCorrupt,
               "MPSAdd[0].input2_id: value 1 is read, but no node before has written it");
  payload = base();
  payload.output(1);
  expect_error(payload, Code::kCorrupt, "MPSGraph.output_ids: value 1 is read");
  payload = base();
  payload.output(9);
  expect_error(payload, Code::kCorrupt, "MPSGraph.output_ids: there is no value 9");
  payload = base();
  payload.kind_number = 91;
  payload.node("MPSAdd", add(0, 2, 1));
  expect_error(payload, Code::kCorrupt, "MPSNode[0].mpsnode_union_type: there is no node kind 91");
  payload = base();
  payload.edit(1).num_dims_error = 1;
  expect_error(payload, Code::kCorrupt, "MPSTensor[1].num_dims: it is 2, but dims has 1");
  payload = base();
  payload.edit(1).dims = {-1};
  expect_error(payload, Code::kCorrupt, "MPSTensor[1].dims: an extent is -1");
  payload = base();
  payload.edit(1).dims = {1 << 30, 1 << 30, 1 << 30};
  expect_error(payload, Code::kCorrupt, "MPSTensor[1].dims:");
  payload = base();
  payload.edit(1).dims = List(65, 1);
  expect_error(payload, Code::kCorrupt, "MPSTensor[1].dims: it has 65 entries, more than 64");
  payload = base();
  payload.edit(1).datatype = 99;
  payload.node("MPSAdd", add(0, 2, 1));
  expect_error(payload, Code::kCorrupt, "MPSTensor[1].datatype: there is no MPSDataType 99");
  payload = base();
  payload.edit(2).offset = 4;
  payload.node("MPSAdd", add(0, 2, 1));
  expect_error(payload, Code::kCorrupt,
               "MPSTensor[2].segment_offset: 8 bytes at byte 4 do not fit into a segment of 8");
  payload = base();
  payload.edit(2).size = 7;
  payload.node("MPSAdd", add(0, 2, 1));
  expect_error(payload, Code::kCorrupt,
               "MPSTensor[2].constant_buffer_size: it is 7, but 2 elements of f32 take 8 bytes");
  payload = base();
  payload.edit(1).dims = {3};
  payload.node("MPSAdd", add(0, 2, 1));
  expect_error(payload, Code::kInvalidArgument,
               "MPSAdd[0]: the result has the shape [2], but value 1 is declared [3]");
  payload = base();
  payload.segment_offset_error = 1000;
  expect_error(payload, Code::kCorrupt, "header of the payload: a segment of 8 bytes");
  expect_error(base(), Code::kInvalidArgument, "MPSGraph.output_ids: the payload has no outputs");
}

TEST(Payload, AllThatIsNotSupportedIsListed) {
  PayloadBuilder payload;
  const int x = payload.input(DType::kBool, {2}), image = payload.input(F32, {1, 1, 3, 3, 3});
  const int w = payload.constant<float>(F32, {1, 1, 1, 1, 1}, {1});
  const int y = payload.value(DType::kBool, {2}), z = payload.value(F32, {2});
  const int v = payload.value(F32, {1, 1, 3, 3, 3});
  payload.node("MPSPow", {{0, x}, {1, x}, {2, y}});
  payload.node("MPSNeg", {{0, y}, {1, z}});  // needs what is missing: not worth a word
  payload.node("MPSConv2D", {{0, image}, {1, w}, {2, -1}, {3, v}});
  payload.output(z);
  expect_error(payload, Code::kUnsupported,
               "test: 2 of 3 nodes are not supported: MPSPow[0]: bools are not supported; "
               "MPSConv2D[2]: weights of rank 5 are not supported");
}

TEST(Payload, TruncatedFilesAreErrors) {
  const std::string whole = sum_with(F32, {3}, [](PayloadBuilder& p) {
                              return p.constant<float>(F32, {3}, {1, 2, 3});
                            }).bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    auto owner = std::make_shared<const std::string>(whole.substr(0, size));
    EXPECT_THROW(import_payload({*owner, owner, false, "test"}), Error) << size << " bytes";
  }
}

// Whatever a file says, there is an Error or a graph.
TEST(Payload, FlippedBytesAreErrorsOrGraphs) {
  std::mt19937 random(1);
  size_t errors = 0, graphs = 0;
  for (const char* kind : {"IndexPut", "Conv2D", "AvgPool2D", "LayerNorm", "SplitWithSizes", "Cat",
                           "Arange", "DequantizePerChannelGroup", "Slice", "Full"}) {
    const auto file =
        MappedFile::open(fmt::format("tests/data/executorch/kinds/MPS{}_f32.pte", kind), "test");
    const Bundle bundle = read_bundle({file->bytes(), file, true, kind});
    const std::string whole(bundle.program.methods.at(0).delegates.at(0).payload);
    for (int round = 0; round < 400; ++round) {
      std::string bytes = whole;
      for (int flips = 0; flips <= round % 4; ++flips)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      auto owner = std::make_shared<const std::string>(std::move(bytes));
      try {
        verify(*import_payload({*owner, owner, false, kind}));
        ++graphs;
      } catch (const Error&) {
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 500u);
  EXPECT_GT(graphs, 500u);
}

}  // namespace
}  // namespace anymps::executorch
