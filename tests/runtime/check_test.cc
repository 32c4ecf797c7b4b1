// SPDX-License-Identifier: Apache-2.0
// ANYMPS_CHECK=reference: a wrong kernel is named, in a graph and in an eager call, and rounding is
// not taken for a mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "drivers/reference_fallback.h"
#include "ops/elementwise/program_builder.h"
#include "runtime/eager/eager.h"
#include "runtime/executable.h"
#include "support/device_tensor.h"

namespace anymps {
namespace {

using testing::elements;
using testing::error_of;
using testing::tensor;

// A driver that adds wrongly: ANYMPS_CHECK must name the node.
DevicePtr liar() {
  class Liar final : public Driver {
   public:
    const char* name() const override { return "liar"; }
    std::string description() const override { return "adds one too many"; }
    DriverTraits traits() const override { return {}; }
  };
  static const DriverRegistrar driver("liar", [] { return std::make_unique<Liar>(); });
  static const KernelRegistrar kernel("liar", "add", "wrong", 0,
                                      [](const KernelRequest& request, std::string&) {
                                        const int64_t count = request.out().count();
                                        return make_kernel([count](const KernelArgs& args) {
                                          for (int64_t i = 0; i < count; ++i)
                                            static_cast<float*>(args.outputs[0])[i] = 41;
                                        });
                                      });
  static const KernelRegistrar off(
      "liar", "reduce_mean", "off", 0, [](const KernelRequest& request, std::string&) {
        const int64_t count = request.out().count();
        return make_kernel([count](const KernelArgs& args) {
          std::fill_n(static_cast<float*>(args.outputs[0]), count, 1e-3F);
        });
      });
  // Bytes that are one too many.
  static const KernelRegistrar step(
      "liar", "fused_elementwise", "step", 0, [](const KernelRequest& request, std::string&) {
        const std::shared_ptr<const Kernel> right = make_oracle_kernel(request);
        const int64_t count = request.out().count();
        return make_kernel([right, count](const KernelArgs& args) {
          right->run(args);
          auto* bytes = static_cast<uint8_t*>(args.outputs[0]);
          for (int64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(bytes[i] + 1);
        });
      });
  return Device::get("liar");
}

TEST(Check, NamesTheFirstNodeThatDiffers) {
  auto device = liar();
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.add("neg", {x}, {}, "fine");
  graph.set_outputs({graph.add("exp", {graph.add("add", {y, y}, {}, "culprit")})});
  const std::vector<Tensor> feeds = {tensor(*device, {2}, {1, 2})};
  std::vector<Tensor> results;
  Executable(device, graph).run(feeds, results);  // silently wrong
  Executable checked(device, graph, {.check = true});
  results.clear();
  const std::string error = error_of([&] { checked.run(feeds, results); });
  EXPECT_NE(error.find("[add] kernel liar:wrong differs from reference"), std::string::npos)
      << error;
  EXPECT_NE(error.find("culprit"), std::string::npos) << error;
}

// The same for calls without a graph, whose results may have strides or lie in an input's memory.
TEST(Check, NamesTheEagerCallThatDiffers) {
  setenv("ANYMPS_CHECK", "reference", 1);
  auto device = liar();
  Eager eager(*device, 8);
  unsetenv("ANYMPS_CHECK");
  const auto call = [&](const char* op, const Tensor& to) {
    const Tensor x = tensor(*device, {2, 3}, {1, 2, 3, 4, 5, 6});
    const BoundOp bound(get_op(op), {});
    const TensorView in[] = {view_of(x), view_of(x)}, out[] = {view_of(to.buffer ? to : x)};
    eager.call(bound, {in, get_op(op).inputs.size()}, out, device->queue());
    return elements(*device, to.buffer ? to : x);
  };
  const std::vector<float> negated = {-1, -2, -3, -4, -5, -6};
  EXPECT_EQ(call("neg", {}), negated);
  Tensor strided = tensor(*device, {6}, std::vector<float>(6));
  strided.desc = TensorDesc(DType::kF32, {2, 3});
  strided.desc.strides = {1, 2};
  EXPECT_NO_THROW(call("neg", strided));
  for (const Tensor& to : {tensor(*device, {2, 3}, std::vector<float>(6)), Tensor()})
    EXPECT_NE(error_of([&] { call("add", to); }).find("[add] kernel liar:wrong differs"),
              std::string::npos);
}

// The gradient of a bias in front of a normalization: of the sum only the rounding is left.
TEST(Check, ASumThatCancelsIsNoMistake) {
  const Shape shape = {64, 3, 700};
  std::vector<float> x(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 10'007));
  for (size_t channel = 0; channel < 3; ++channel) {
    double mean = 0;
    const auto each = [&](auto&& visit) {
      for (size_t i = 0; i < x.size(); ++i)
        if (i / 700 % 3 == channel) visit(x[i]);
    };
    each([&](float value) { mean += value / (64 * 700.0); });
    each([&](float& value) { value -= static_cast<float>(mean); });
  }
  auto device = Device::get("cpu");
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    Graph graph;
    graph.set_outputs(
        {graph.add(op, {graph.input("x", DType::kF32, {64, 3, 700})}, {{"axes", Ints{0, 2}}})});
    std::vector<Tensor> results;
    Executable checked(device, graph, {.check = true});
    EXPECT_NO_THROW(checked.run({tensor(*device, shape, x)}, results)) << op;
  }
}

// What numbers are that do not cancel, and what is left of them when all do.
std::vector<float> noise(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 10'007));
  return x;
}

// The same, and each run of so many adds up to zero but for its rounding.
std::vector<float> centered(int64_t count, int64_t run) {
  std::vector<float> x = noise(count);
  for (auto from = x.begin(); from != x.end(); from += run) {
    const double mean = std::accumulate(from, from + run, 0.0) / static_cast<double>(run);
    std::for_each(from, from + run, [&](float& v) { v -= static_cast<float>(mean); });
  }
  return x;
}

struct Cancels {
  const char* op;
  std::vector<Shape> shapes;
  std::vector<std::vector<float>> numbers;
  NamedAttrs attrs;
};

// Each result is zero but for rounding, in all of its elements: the gradient of a normalization or
// a softmax whose own gradient is the same everywhere, the product with weights that add up to
// zero, a normalization of what is constant.
TEST(Check, AResultThatCancelsIsNoMistake) {
  const std::vector<float> same(2 * 8 * 90, 0.37F), tall(2 * 8 * 90, 123.456F);
  const std::vector<float> shares(size_t{16} * 90, 1.0F / 90);
  const std::vector<Cancels> cases = {
      {"layer_norm_gradient", {{16, 90}, {16, 90}}, {same, noise(1440)}, {}},
      {"group_norm_gradient", {{2, 8, 9, 10}, {2, 8, 9, 10}}, {same, noise(1440)}, {{"groups", 2}}},
      {"rms_norm_gradient", {{16, 90}, {16, 90}}, {noise(1440), noise(1440)}, {}},
      {"softmax_result_gradient", {{16, 90}, {16, 90}}, {same, shares}, {}},
      {"instance_norm", {{2, 8, 9, 10}}, {tall}, {}},
      {"matmul", {{16, 90}, {40, 90}}, {same, centered(3600, 90)}, {{"transpose_b", true}}},
      {"conv",
       {{1, 18, 9, 8}, {40, 18, 3, 3}},
       {{same.begin(), same.begin() + 1296}, centered(6480, 162)},
       {}},
      {"avg_pool", {{2, 8, 9, 10}}, {centered(1440, 90)}, {{"kernel", Ints{9, 10}}}},
      {"adaptive_avg_pool", {{2, 8, 9, 10}}, {centered(1440, 90)}, {{"output_size", Ints{1, 1}}}},
      {"conv_weights_gradient",
       {{1, 40, 7, 6}, {1, 18, 9, 8}},
       {centered(1680, 42), {same.begin(), same.begin() + 1296}},
       {{"shape", Ints{40, 18, 3, 3}}}},
  };
  auto device = Device::get("cpu");
  for (const Cancels& c : cases) {
    Graph graph;
    std::vector<Value*> inputs;
    std::vector<Tensor> feeds, results;
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      inputs.push_back(graph.input("x" + std::to_string(i), DType::kF32,
                                   Dims(c.shapes[i].begin(), c.shapes[i].end())));
      feeds.push_back(tensor(*device, c.shapes[i], c.numbers[i]));
    }
    graph.set_outputs({graph.add_node(get_op(c.op), inputs, c.attrs, "", 1)->outputs[0]});
    Executable checked(device, graph, {.check = true});
    EXPECT_NO_THROW(checked.run(feeds, results)) << c.op;
  }
}

// What a GELU is in bytes, checked on a device.
void run_gelu_in_bytes(const DevicePtr& device) {
  ElementwiseProgramBuilder program;
  const auto number = [](double value) { return ProgramArg::immediate(value); };
  ProgramArg t = program.call(get_op("gelu"), {ProgramArg::input(0)});
  t = program.call(get_op("div"), {t, number(0.0117F)});
  t = program.call(get_op("rint"), {t});
  t = program.call(get_op("add"), {t, number(20)});
  program.output(program.call(get_op("cast"), {t}, {{"dtype", DType::kU8}}));
  const std::vector<int64_t> words(program.words().begin(), program.words().end());
  const double step = 0.0117F;
  std::vector<float> x;
  for (int half = 0; half < 200; ++half) {  // floats around each whose GELU is half way
    double low = 0, high = 3;
    for (int i = 0; i < 60; ++i) {
      const double mid = (low + high) / 2;
      (mid * (1 + std::erf(mid / std::numbers::sqrt2)) / 2 < (half + 0.5) * step ? low : high) =
          mid;
    }
    float near = static_cast<float>(low);
    for (int i = 0; i < 32; ++i) near = std::nextafter(near, 0.0F);
    for (int i = 0; i < 64; ++i, near = std::nextafter(near, 9.0F)) x.push_back(near);
  }
  const int64_t count = std::ssize(x);
  Graph graph;
  Value* input = graph.input("x", DType::kF32, {count});
  graph.set_outputs(
      graph.add_node(get_op("fused_elementwise"), {input}, {{"program", words}}, "", 1)->outputs);
  std::vector<Tensor> results;
  Executable(device, graph, {.check = true}).run({tensor(*device, {count}, x)}, results);
}

// A float that lies half way between two steps but for its rounding may become either.
TEST(Check, AStepBesideHalfWayIsNoMistake) {
  EXPECT_NO_THROW(run_gelu_in_bytes(Device::get("cpu")));
  const std::string error = error_of([] { run_gelu_in_bytes(liar()); });
  EXPECT_NE(error.find("kernel liar:step differs from reference"), std::string::npos) << error;
}

// More than rounding is, whatever cancels.
TEST(Check, AMistakeWhereAllCancelsIsFound) {
  auto device = liar();
  Graph graph;
  graph.set_outputs(
      {graph.add("reduce_mean", {graph.input("x", DType::kF32, {16, 90})}, {{"axes", Ints{1}}})});
  std::vector<Tensor> results;
  Executable checked(device, graph, {.check = true});
  const std::string error = error_of([&] {
    checked.run({tensor(*device, {16, 90}, centered(1440, 90))}, results);
  });
  EXPECT_NE(error.find("kernel liar:off differs from reference"), std::string::npos) << error;
}

// A normalization of what is normalized already, as at the end of a transformer: so is its mean.
TEST(Check, AMeanThatCancelsIsNoMistake) {
  const Shape shape = {16, 64};
  const std::vector<float> x = noise(element_count(shape));
  auto device = Device::get("cpu");
  Graph graph;
  Value* once =
      graph.add("layer_norm", {graph.input("x", DType::kF32, {16, 64})}, {{"axis", 1}}, "first");
  Node* again = graph.add_node(get_op("layer_norm"), {once}, {{"axis", 1}}, "second", 3);
  graph.set_outputs(again->outputs);
  std::vector<Tensor> results;
  Executable checked(device, graph, {.check = true});
  EXPECT_NO_THROW(checked.run({tensor(*device, shape, x)}, results));
}

}  // namespace
}  // namespace anymps
