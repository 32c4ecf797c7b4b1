// SPDX-License-Identifier: Apache-2.0
// The op that docs/guides/add_an_op.md adds, with the code of the page: what the page promises of
// it is true.
#include <gtest/gtest.h>

#include "anymps/anymps.hpp"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

struct ActivationCase {
  const char* op;
  NamedAttrs attrs;
  std::vector<double> y;  // at -2, 0, 1, 8
};

TEST(AddAnOp, TheReferenceComputes) {
  const std::vector<ActivationCase> cases = {
#include "table_line.inc"
      {"softshrink", {{"alpha", 2.0}}, {0, 0, 0, 6}},
  };
  for (const ActivationCase& c : cases)
    EXPECT_TRUE(same(run_reference(c.op, {f32s({-2, 0, 1, 8})}, c.attrs), f32s(c.y), 1e-6)) << c.op;
  EXPECT_TRUE(same(run_reference("softshrink", {f32s({kNan})}), f32s({kNan})));
}

TEST(AddAnOp, TheRecordIsWhereThePageSays) {
  const Op& op = get_op("softshrink");
  EXPECT_EQ(op.family, "elementwise");
  EXPECT_EQ(op.file, "activation");
  EXPECT_TRUE(op.is(kElementwise));
}

TEST(AddAnOp, TheReferencePageAndTheBuilderHaveIt) {
  EXPECT_NE(amps_op_find("softshrink"), nullptr);
  EXPECT_NE(amps::ops_text("markdown").find("### softshrink\n"), std::string::npos);
  EXPECT_NE(amps::ops_text("hpp").find("Value softshrink(Value x"), std::string::npos);
  EXPECT_NE(amps::ops_text("matrix").find("softshrink"), std::string::npos);
}

// Its kernels, as the profiler names them.
std::string kernels_of(amps::DType dtype, const char* driver, std::vector<float>& y) {
  const amps::Device device = amps::Device::get(driver);
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 16) / 4 - 2;
  amps::Graph graph;
  const amps::Value in = graph.input("x", amps::DType::f32, {1000});
  const amps::Value cast = graph.cast(in, {.dtype = dtype});
  const amps::Value made = graph.op("softshrink", {cast}, {{"alpha", 0.75}}, nullptr, 1)[0];
  graph.outputs({graph.cast(made, {.dtype = amps::DType::f32})});
  amps::CompileOptions options;
  options.optimization_level = 0;
  const amps::Executable executable = device.compile(graph, options);
  amps::Profiler profiler;
  y = executable.run({device.from_host(amps::DType::f32, {1000}, x.data())}, nullptr, &profiler)[0]
          .to_vector<float>();
  const std::string table = profiler.text("table");
  const size_t line = table.find(" softshrink ");
  return table.substr(line, table.find('\n', line) - line);
}

// The page's factory takes f32 and refuses the rest, which the functions of the page then serve.
TEST(AddAnOp, EveryDriverComputesEveryDtype) {
  for (const amps::DType dtype :
       {amps::DType::f32, amps::DType::f16, amps::DType::bf16, amps::DType::f64}) {
    std::vector<float> fast, right;
    const std::string kernel = kernels_of(dtype, "cpu", fast);
    kernels_of(dtype, "reference", right);
    EXPECT_EQ(fast, right) << amps::name(dtype);
    const char* wanted = dtype == amps::DType::f32 ? "cpu:mine" : "cpu:simd";
    EXPECT_NE(kernel.find(wanted), std::string::npos) << kernel;
  }
}

TEST(AddAnOp, TheGradient) {
  const amps::Device device = amps::Device::get("cpu");
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {4});
  graph.outputs({graph.gradient(graph.op("softshrink", {x}, {}, nullptr, 1)[0], {x})[0]});
  const float at[] = {-2, 0.25, 1, 8};
  const auto dx = device.compile(graph).run({device.from_host(amps::DType::f32, {4}, at)});
  EXPECT_EQ(dx[0].to_vector<float>(), (std::vector<float>{1, 0, 1, 1}));
}

}  // namespace
}  // namespace anymps::testing
