// SPDX-License-Identifier: Apache-2.0
// The gradient of every op against central differences, on the samples of its record. The loss is
// the sum of all float outputs with random weights; it is differentiated to all float inputs. Of
// complex numbers both parts count: along a direction v the slope is the real part of conj(g) * v.
#include <chrono>
#include <cstdio>
#include <set>

#include "graph/gradient.h"
#include "op_table/op_cases.h"
#include "ops/gradient.h"
#include "runtime/device.h"
#include "runtime/executable.h"

namespace anymps::testing {
namespace {

using Number = std::complex<double>;
using Numbers = std::vector<Number>;

size_t case_count = 0, derivative_count = 0, refused_count = 0;

// A case as a graph, its inputs that are differentiated, and their elements.
struct Problem {
  Graph graph;
  Value* loss = nullptr;
  std::vector<Value*> xs;
  std::vector<TestTensor> feeds;
  bool coarse = false;   // not all of it is f64
  bool complex = false;  // parts of it are complex, of single precision
};

// Floats beside f64 are f64 too where the op takes them.
TestTensor widened(const OpCase& item, const InputSpec& spec, const TestTensor& tensor) {
  if (tensor.dtype() != DType::kF32 || !contains(spec.dtypes, DType::kF64) ||
      !item.label.starts_with("f64 "))
    return tensor;
  return {DType::kF64, tensor.shape(), tensor.values()};
}

bool whole_numbers(const TestTensor& tensor) {
  const std::vector<double> values = tensor.values();
  return std::all_of(values.begin(), values.end(), [](double v) { return v == std::floor(v); });
}

void build(Problem& problem, const OpCase& item) {
  Graph& graph = problem.graph;
  std::vector<Value*> inputs;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    if (!item.inputs[i]) {
      inputs.push_back(nullptr);
      continue;
    }
    const InputSpec& spec = item.op->inputs[std::min(i, item.op->inputs.size() - 1)];
    const TestTensor tensor = widened(item, spec, *item.inputs[i]);
    // Floats that count, and those by which a choice is made; narrow ones among kinks; regions
    // whose samples lie on them, and matrices whose eigenvectors have two leading elements.
    const bool counts = spec.name == "indices" || spec.name == "depth" || spec.name == "rate" ||
                        spec.name == "exponent" || spec.name == "concentration" ||
                        (spec.name == "grid" && tensor.dtype() != DType::kF64) ||
                        ((spec.name == "rois" || item.op->name == "eig") && whole_numbers(tensor));
    if (!contains(kFloat | kComplex, tensor.dtype()) || counts) {
      const auto* bytes = static_cast<const std::byte*>(tensor.ptr());
      inputs.push_back(graph.constant(
          Constant::copy(tensor.dtype(), tensor.shape(),
                         {bytes, static_cast<size_t>(tensor.count()) * size_of(tensor.dtype())})));
      continue;
    }
    problem.coarse |= real_dtype(tensor.dtype()) != DType::kF64;
    problem.complex |= tensor.dtype() == DType::kC64;
    problem.xs.push_back(
        graph.input(fmt::format("x{}", i), tensor.dtype(), to_dims(tensor.shape())));
    problem.feeds.push_back(tensor);
    inputs.push_back(problem.xs.back());
  }
  const Node* node = graph.add_node(*item.op, inputs, item.attrs, "op", item.outputs);
  std::vector<Value*> ys;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    Value* y = node->outputs[i];
    // Reserves are for the gradients of recurrent layers, and have none.
    const std::vector<OutputSpec>& specs = item.op->outputs;
    if (!y->type.static_shape() || specs[std::min(i, specs.size() - 1)].name == "reserve") continue;
    problem.coarse |= is_float(y->dtype()) && y->dtype() != DType::kF64;
    if (is_float(y->dtype())) ys.push_back(y);
    if (!is_complex(y->dtype())) continue;
    if (y->dtype() == DType::kC64) problem.coarse = problem.complex = true;
    for (const char* part : {"real_part", "imaginary_part"}) ys.push_back(graph.add(part, {y}));
  }
  for (size_t i = 0; i < ys.size(); ++i) {
    Value* y = ys[i];
    TestTensor weights(DType::kF64, to_shape(y->shape()));
    weights.fill(7 + i, -1, 1);
    Value* w = graph.constant(Constant::copy(
        DType::kF64, weights.shape(),
        {static_cast<const std::byte*>(weights.ptr()), static_cast<size_t>(weights.count()) * 8}));
    if (y->dtype() != DType::kF64) y = graph.add("cast", {y}, {{"dtype", DType::kF64}});
    Value* sum = graph.add("reduce_sum", {graph.add("mul", {y, w})}, {{"keep_dims", false}});
    problem.loss = problem.loss ? graph.add("add", {problem.loss, sum}) : sum;
  }
}

// Runs a graph on host tensors.
class Runner {
 public:
  Runner(const char* device, const Graph& graph)
      : device_(Device::get(device)), executable_(device_, graph) {}

  std::vector<TestTensor> operator()(const std::vector<TestTensor>& feeds) {
    std::vector<Tensor> inputs, outputs(executable_.graph().outputs().size());
    for (const TestTensor& feed : feeds)
      inputs.push_back(device_->from_host(feed.desc(), feed.ptr()));
    executable_.run(inputs, outputs);
    std::vector<TestTensor> results;
    for (const Tensor& output : outputs) {
      results.emplace_back(output.desc.dtype, output.desc.shape);
      if (results.back().count() > 0) device_->to_host(output, results.back().ptr());
    }
    return results;
  }

 private:
  DevicePtr device_;
  Executable executable_;
};

Numbers elements(const TestTensor& tensor) {
  Numbers all;
  for_each_index(tensor.shape(), [&](const Shape& at) { all.push_back(tensor.get(at)); });
  return all;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (std::conj(a[i]) * b[i]).real();
  return sum;
}

struct Direction {
  size_t input = 0;
  Numbers v;
};

// Single elements of each input, and one direction that moves all of its elements.
std::vector<Direction> directions_of(const Problem& problem, size_t most) {
  std::mt19937_64 random(5);
  std::vector<Direction> all;
  for (size_t i = 0; i < problem.feeds.size(); ++i) {
    const auto count = static_cast<size_t>(problem.feeds[i].count());
    const bool complex = is_complex(problem.feeds[i].dtype());
    if (count == 0) continue;
    Direction whole{i, Numbers(count)};
    for (Number& v : whole.v) {
      v = random() & 1 ? 1 : -1;
      if (complex) v += Number(0, random() & 1 ? 1 : -1);
    }
    // Of a large tensor, some element stands at a kink whichever way all of them move.
    if (!problem.coarse || count < 10000) all.push_back(std::move(whole));
    for (size_t k = 0; k < std::min(count, most); ++k)
      for (const Number step : {Number(1), Number(0, 1)}) {
        if (!complex && step.real() == 0) continue;
        Direction one{i, Numbers(count, 0)};
        one.v[count <= most ? k : random() % count] = step;
        all.push_back(std::move(one));
      }
  }
  return all;
}

// The gradients of a case on a driver, in double.
std::vector<Numbers> gradients_on(const char* driver, const Graph& graph, const Problem& problem) {
  std::vector<Numbers> all;
  const std::vector<TestTensor> results = Runner(driver, graph)(problem.feeds);
  for (size_t i = 0; i < problem.xs.size(); ++i) {
    EXPECT_EQ(results[i].shape(), problem.feeds[i].shape()) << "gradient of input " << i;
    EXPECT_EQ(results[i].dtype(), problem.feeds[i].dtype());
    all.push_back(elements(results[i]));
  }
  return all;
}

double largest_of(const Numbers& numbers, double at_least) {
  for (const Number& g : numbers)
    if (std::isfinite(std::abs(g))) at_least = std::max(at_least, std::abs(g));
  return at_least;
}

void check_case(const OpCase& item) {
  Problem problem;
  try {
    build(problem, item);
  } catch (const Error&) {  // an op may not be defined for complex numbers in all of its modes
    if (item.label.starts_with("c64 ") || item.label.starts_with("c128 ")) return;
    throw;
  }
  if (!problem.loss || problem.xs.empty()) return;
  ++case_count;
  SCOPED_TRACE(item.op->name + " " + item.label);
  auto forward = problem.graph.clone();
  forward->set_outputs({forward->find_value(problem.loss->name)});
  problem.graph.set_outputs(gradient(problem.graph, problem.loss, problem.xs));
  verify(problem.graph);
  const auto expected = gradients_on("reference", problem.graph, problem);
  const auto fast = gradients_on("cpu", problem.graph, problem);
  if (::testing::Test::HasFailure()) return;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double largest = largest_of(expected[i], 1), tolerance = problem.coarse ? 1e-3 : 1e-8;
    for (size_t k = 0; k < expected[i].size(); ++k) {
      const Number a = fast[i][k] / largest, b = expected[i][k] / largest;
      ASSERT_TRUE(close(a.real(), b.real(), tolerance) && close(a.imag(), b.imag(), tolerance))
          << "on cpu, input " << i << " element " << k << ": " << fast[i][k] << ", on reference "
          << expected[i][k];
    }
  }

  Runner run("reference", *forward);
  const auto start = std::chrono::steady_clock::now();
  const double loss = run(problem.feeds)[0].get({}).real();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!std::isfinite(loss)) return;
  const size_t most = seconds > 0.02 ? 1 : 6;
  // A narrow output moves in steps; only linear functions stand the wide difference.
  bool half = false;
  for (const Node* node : forward->node_list())
    for (const Value* value : node->outputs) half |= is_half(value->dtype());
  const double h = half ? 0.5 : problem.complex ? 3e-3 : problem.coarse ? 2e-2 : 1e-6;
  const double tolerance = half ? 2e-2 : problem.coarse ? 5e-3 : 2e-6;
  for (const Direction& direction : directions_of(problem, most)) {
    const auto difference_of = [&](double step) {
      double sides[2];
      for (const int side : {0, 1}) {
        std::vector<TestTensor> feeds = problem.feeds;
        TestTensor& feed = feeds[direction.input];
        size_t k = 0;
        for_each_index(feed.shape(), [&](const Shape& at) {
          feed.put(at, feed.get(at) + (side ? step : -step) * direction.v[k++]);
        });
        sides[side] = run(feeds)[0].get({}).real();
      }
      return (sides[1] - sides[0]) / (2 * step);
    };
    ++derivative_count;
    const double slope = dot(expected[direction.input], direction.v);
    double difference = difference_of(h);
    const double allowed =
        tolerance *
        largest_of(expected[direction.input], std::abs(difference) + 0.1 * std::abs(loss) + 1e-2);
    // A wide difference may reach over a kink or near a pole, where a smaller one does not.
    if (problem.coarse && !half && std::abs(slope - difference) > allowed)
      difference = difference_of(h / 10);
    EXPECT_NEAR(slope, difference, allowed)
        << "input " << direction.input << ", "
        << (dot(direction.v, direction.v) == 1 ? "one element" : "all elements");
    if (::testing::Test::HasFailure()) return;
  }
}

// The dtypes in which an op is checked: the widest float of its main input, and complex numbers if
// its gradient knows them.
std::vector<std::string> checked_dtypes(const Op& op, bool complex) {
  std::set<std::string> names;
  for_each_case(op,
                [&](OpCase& item) { names.insert(item.label.substr(0, item.label.find(' '))); });
  std::vector<std::string> checked;
  for (const char* name : {"f64", "f32", "i64", "i32", "bool"})
    if (checked.empty() && names.contains(name)) checked.emplace_back(name);
  for (const char* name : {"c64", "c128"})
    if (complex && names.contains(name)) checked.emplace_back(name);
  if (checked.empty() && !names.empty()) checked.push_back(*names.begin());
  return checked;
}

class OpGradient : public ::testing::TestWithParam<const Op*> {
 public:
  static void TearDownTestSuite() {
    std::printf("gradient cases: %zu, refused: %zu, derivatives compared: %zu\n", case_count,
                refused_count, derivative_count);
  }
};

TEST_P(OpGradient, AgreesWithDifferences) {
  const Op& op = *GetParam();
  const GradientRule* rule = find_gradient(op);
  ASSERT_NE(rule, nullptr) << op.name << " has neither a gradient nor a reason why it has none: "
                           << "say it beside its record";
  EXPECT_NE(rule->reason.empty(), rule->kind != GradientRule::Kind::kFunction);
  if (rule->kind == GradientRule::Kind::kRefused) GTEST_SKIP() << rule->reason;
  if (!op.test.skip.empty()) GTEST_SKIP() << op.test.skip;
  const std::vector<std::string> dtypes = checked_dtypes(op, rule->complex);
  size_t cases = 0, refused = 0;
  for_each_case(op, [&](OpCase& item) {
    const std::string& label = item.label;
    const std::string dtype = label.substr(0, label.find(' '));
    if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end() ||
        label.ends_with(" strided") || label.ends_with(" offset") || label.ends_with(" special") ||
        HasFailure())
      return;
    try {
      ++cases;
      check_case(item);
    } catch (const Error& error) {
      refused += error.code() == Code::kUnsupported;
      if (error.code() == Code::kUnsupported) return RecordProperty(label, error.what());
      ADD_FAILURE() << op.name << " " << label << ": " << error.what();
    }
  });
  refused_count += refused;
  EXPECT_TRUE(refused < cases || cases == 0) << op.name << ": every case is refused";
}

INSTANTIATE_TEST_SUITE_P(All, OpGradient, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace anymps::testing
