// SPDX-License-Identifier: Apache-2.0
// The harness of the pass tests: see pass_test.h. It is apart so that the tests compile quickly.
#include "passes/pass_test.h"

#include <cstring>
#include <unordered_map>

#include "graph/printer.h"
#include "support/tensor.h"

namespace anymps::testing {

namespace {

// Computes the graph node by node. A symbol in the shape of an input becomes `extent`.
std::vector<TestTensor> compute(const Graph& graph, int64_t extent = 2) {
  std::unordered_map<const Value*, TestTensor> tensors;
  uint64_t seed = 1;
  for (const Value* input : graph.inputs()) {
    Shape shape;
    for (const Dim& dim : input->shape()) shape.push_back(dim.known() ? dim.value() : extent);
    tensors.emplace(input, TestTensor(input->dtype(), shape).fill(seed++));
  }
  auto tensor_of = [&](const Value* value) {
    if (!value->is_constant()) return tensors.at(value);
    TestTensor tensor(value->dtype(), value->constant->shape());
    std::memcpy(tensor.ptr(), value->constant->data().get(), value->constant->bytes());
    return tensor;
  };
  for (const auto& node : graph.nodes()) {
    TestInputs inputs;
    for (const Value* value : node->inputs)
      inputs.push_back(value ? std::optional(tensor_of(value)) : std::nullopt);
    auto results = run_reference_all(node->op->name.c_str(), inputs, node->attrs.named(),
                                     node->outputs.size());
    for (size_t i = 0; i < results.size(); ++i) tensors.emplace(node->outputs[i], results[i]);
  }
  std::vector<TestTensor> outputs;
  for (const Value* value : graph.outputs()) outputs.push_back(tensor_of(value));
  return outputs;
}

// As the runtime does it: with the reference kernels.
std::vector<ConstantPtr> evaluate(const Node& node) {
  TestInputs inputs;
  for (const Value* value : node.inputs) {
    if (!value) {
      inputs.push_back(std::nullopt);
      continue;
    }
    TestTensor tensor(value->dtype(), value->constant->shape());
    std::memcpy(tensor.ptr(), value->constant->data().get(), value->constant->bytes());
    inputs.push_back(tensor);
  }
  std::vector<ConstantPtr> results;
  for (const TestTensor& tensor :
       run_reference_all(node.op->name.c_str(), inputs, node.attrs.named(), node.outputs.size()))
    results.push_back(
        Constant::copy(tensor.dtype(), tensor.shape(),
                       {static_cast<const std::byte*>(tensor.ptr()), tensor.desc().bytes()}));
  return results;
}

}  // namespace

Value* weights(Graph& graph, const std::string& name, Shape shape, double low, double high,
               DType dtype) {
  TestTensor tensor(dtype, shape);
  tensor.fill(std::hash<std::string>{}(name), low, high);
  return graph.constant(
      Constant::copy(dtype, shape,
                     {static_cast<const std::byte*>(tensor.ptr()), tensor.desc().bytes()}),
      name);
}

PassContext fusing(bool nhwc) {
  PassContext context;
  context.fuses = true;
  context.prefers_nhwc = nhwc;
  context.evaluate = evaluate;
  return context;
}

int rewrite(Graph& graph, const std::vector<std::string>& names, PassContext context,
            double tolerance) {
  verify(graph);
  const auto before = compute(graph);
  std::vector<std::string> output_names;
  for (const Value* value : graph.outputs()) output_names.push_back(value->name);
  int changes = 0;
  if (names.empty()) {
    for (const PassReport& report : run_passes(graph, context)) changes += report.changes;
  }
  for (const std::string& name : names) {
    bool found = false;
    for (const Pass& pass : all_passes()) {
      if (pass.name != name) continue;
      found = true;
      changes += pass.run(graph, context);
      graph.insert_before(nullptr);
      verify(graph, name);
    }
    EXPECT_TRUE(found) << "there is no pass " << name;
  }
  const auto after = compute(graph);
  EXPECT_EQ(before.size(), after.size());
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    EXPECT_EQ(output_names[i], graph.outputs()[i]->name);
    EXPECT_TRUE(same(after[i], before[i], tolerance)) << to_text(graph);
  }
  return changes;
}

std::string nodes_of(const Graph& graph) {
  std::string result = "\n";
  for (const auto& node : graph.nodes()) result += to_text(*node) + "\n";
  return result;
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const auto& node : graph.nodes()) found += node->is(op);
  return found;
}

}  // namespace anymps::testing
