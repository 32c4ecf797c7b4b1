// SPDX-License-Identifier: Apache-2.0
// The op that docs/guides/add_an_op.md adds, with the code of the page: what the page promises of
// it is true. `softshrink_short` has the other form of what the page shows twice.
#include <gtest/gtest.h>

#include "anymps/anymps.hpp"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

constexpr const char* kOps[] = {"softshrink", "softshrink_short"};

struct ActivationCase {
  const char* op;
  NamedAttrs attrs;
  std::vector<double> y;  // at -2, 0, 1, 8
};

TEST(AddAnOp, TheReferenceComputes) {
  const std::vector<ActivationCase> cases = {
#include "guide/table_line.inc"
      {"softshrink_short", {}, {-1.5, 0, 0.5, 7.5}},
      {"softshrink", {{"alpha", 2.0}}, {0, 0, 0, 6}},
  };
  for (const ActivationCase& c : cases)
    EXPECT_TRUE(same(run_reference(c.op, {f32s({-2, 0, 1, 8})}, c.attrs), f32s(c.y), 1e-6)) << c.op;
  for (const char* op : kOps)
    EXPECT_TRUE(same(run_reference(op, {f32s({kNan})}), f32s({kNan}))) << op;
}

TEST(AddAnOp, TheShortRecordSaysTheSame) {
  const Op &op = get_op("softshrink"), &other = get_op("softshrink_short");
  EXPECT_EQ(op.doc, other.doc);
  EXPECT_EQ(op.formula, other.formula);
  EXPECT_EQ(op.facts, other.facts);
  EXPECT_EQ(op.inputs.size(), other.inputs.size());
  EXPECT_EQ(op.attrs.size(), other.attrs.size());
  EXPECT_EQ(op.attrs[0].name, other.attrs[0].name);
  EXPECT_EQ(op.attrs[0].default_value, other.attrs[0].default_value);
}

TEST(AddAnOp, TheReferencePageAndTheBuilderHaveIt) {
  EXPECT_NE(amps_op_find("softshrink"), nullptr);
  EXPECT_NE(amps::ops_text("markdown").find("### softshrink\n"), std::string::npos);
  EXPECT_NE(amps::ops_text("hpp").find("Value softshrink(Value x"), std::string::npos);
  EXPECT_NE(amps::ops_text("matrix").find("softshrink"), std::string::npos);
}

// Its kernels, as the profiler names them.
std::string kernels_of(const char* op, amps::DType dtype, const char* driver,
                       std::vector<float>& y) {
  const amps::Device device = amps::Device::get(driver);
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 16) / 4 - 2;
  amps::Graph graph;
  const amps::Value in = graph.input("x", amps::DType::f32, {1000});
  const amps::Value cast = graph.cast(in, {.dtype = dtype});
  const amps::Value made = graph.op(op, {cast}, {{"alpha", 0.75}}, nullptr, 1)[0];
  graph.outputs({graph.cast(made, {.dtype = amps::DType::f32})});
  amps::CompileOptions options;
  options.optimization_level = 0;
  const amps::Executable executable = device.compile(graph, options);
  amps::Profiler profiler;
  y = executable.run({device.from_host(amps::DType::f32, {1000}, x.data())}, nullptr, &profiler)[0]
          .to_vector<float>();
  const std::string table = profiler.text("table");
  const size_t line = table.find(" " + std::string(op) + " ");
  return table.substr(line, table.find('\n', line) - line);
}

TEST(AddAnOp, EveryDriverComputesEveryDtype) {
  for (const char* op : kOps)
    for (const amps::DType dtype :
         {amps::DType::f32, amps::DType::f16, amps::DType::bf16, amps::DType::f64}) {
      std::vector<float> fast, right;
      const std::string kernel = kernels_of(op, dtype, "cpu", fast);
      kernels_of(op, dtype, "reference", right);
      EXPECT_EQ(fast, right) << op << " " << amps::name(dtype);
      if (op == kOps[0]) {
        EXPECT_NE(kernel.find("cpu:simd"), std::string::npos) << kernel;
      } else {  // the factory of the page takes f32 and refuses the rest
        const char* wanted = dtype == amps::DType::f32 ? "cpu:mine" : "reference";
        EXPECT_NE(kernel.find(wanted), std::string::npos) << kernel;
      }
    }
}

TEST(AddAnOp, TheGradient) {
  const amps::Device device = amps::Device::get("cpu");
  for (const char* op : kOps) {
    amps::Graph graph;
    const amps::Value x = graph.input("x", amps::DType::f32, {4});
    graph.outputs({graph.gradient(graph.op(op, {x}, {}, nullptr, 1)[0], {x})[0]});
    const float at[] = {-2, 0.25, 1, 8};
    const auto dx = device.compile(graph).run({device.from_host(amps::DType::f32, {4}, at)});
    EXPECT_EQ(dx[0].to_vector<float>(), (std::vector<float>{1, 0, 1, 1})) << op;
  }
}

}  // namespace
}  // namespace anymps::testing
