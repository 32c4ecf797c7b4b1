// SPDX-License-Identifier: Apache-2.0
// What functions of one number do at the ends of their range, alone and as a fused program: signs
// of zeros, NaN, infinities, and tails, which must be right beside their own size and not only
// beside the largest element of a tensor.
#include "drivers/cpu/run_cpu.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

constexpr double kZero = 0.0;

std::vector<double> edges_of(const Op& op) {
  std::vector<double> edges = {-kZero, kZero, kNan, kInf, -kInf, -1e-30, 1e-30, -1e-5, 1e-5};
  for (const double x :
       {0.3, 1.0, 3.0, 5.0, 6.3, 6.4, 7.0, 8.0, 10.0, 12.0, 13.5, 20.0, 40.0, 80.0})
    edges.insert(edges.end(), {-x, x});
  // Periods are lost in large arguments, to which halves round.
  const bool periodic = op.name == "sin" || op.name == "cos" || op.name == "tan";
  if (!periodic) edges.insert(edges.end(), {-100, 100, -1000, 1000, -3e38, 3e38});
  return edges;
}

// The first element that differs, or "".
std::string first_difference(const TestTensor& x, const TestTensor& actual,
                             const TestTensor& expected, double tolerance) {
  const double least = expected.dtype() == DType::kF64   ? 1e-300
                       : expected.dtype() == DType::kF16 ? 1e-4
                                                         : 1.2e-38;  // below: few bits are left
  const std::vector<double> xs = x.values(), as = actual.values(), bs = expected.values();
  for (size_t i = 0; i < xs.size(); ++i) {
    const double a = as[i], b = bs[i];
    const bool good = std::isnan(b)   ? std::isnan(a)
                      : b == 0        ? a == 0 && std::signbit(a) == std::signbit(b)
                      : std::isinf(b) ? a == b
                                      : std::abs(a - b) <= tolerance * std::abs(b) + least;
    if (!good) return fmt::format("at {}: {:.9g}, expected {:.9g}", xs[i], a, b);
  }
  return "";
}

TEST(CpuEdges, FunctionsOfOneNumber) {
  int cases = 0;
  for (const Op* op : all_ops()) {
    if (!op->is(kElementwise) || op->is(kInternal) || op->inputs.size() != 1 ||
        op->inputs[0].variadic || op->name == "cast")
      continue;
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      if (!contains(op->inputs[0].dtypes, dtype)) continue;
      std::vector<NamedAttrs> forms{{}};
      if (op->name == "gelu") forms.push_back({{"approximate", "tanh"}});
      for (const NamedAttrs& attrs : forms) {
        const std::vector<double> edges = edges_of(*op);
        const TestTensor x(dtype, {static_cast<int64_t>(edges.size())}, edges);
        const TestTensor expected = run_reference(op->name.c_str(), {x}, attrs);
        // Exponents are as exact as their argument, of which the tails have a large one.
        const double tolerance = std::max(op->test.tolerance.of(dtype), is_half(dtype) ? 0 : 2e-5);
        const std::vector<ProgramAttr> given(attrs.begin(), attrs.end());
        const NamedAttrs program = {
            {"program", testing::program({{op->name.c_str(), {ProgramArg::input(0)}, given}})}};
        TestInputs inputs = {x};
        const Prepared alone = prepare_cpu(op->name.c_str(), inputs, attrs),
                       fused = prepare_cpu("fused_elementwise", inputs, program);
        ASSERT_TRUE(alone.kernel && fused.kernel) << op->name << alone.refusals << fused.refusals;
        const std::string label = fmt::format("{} {} in {}", op->name, name(dtype),
                                              printed(std::get<Ints>(program[0].value)));
        EXPECT_EQ(first_difference(x, run(alone, inputs)[0], expected, tolerance), "") << label;
        EXPECT_EQ(first_difference(x, run(fused, inputs)[0], expected, tolerance), "")
            << label << " fused";
        EXPECT_EQ(
            first_difference(x, run_reference("fused_elementwise", inputs, program), expected, 0),
            "")
            << label << " fused, reference";
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 150);
}

// min and max may give either of two zeros, as C's do.
TEST(CpuEdges, FunctionsOfTwoNumbers) {
  const std::vector<double> edges = {-kZero, kZero, kNan, kInf, -kInf, -1e-30, 1e-30, -0.5, 0.5,
                                     -1,     1,     -2,   2,    -3,    3,      -7.5,  7.5,  100};
  const auto n = static_cast<int64_t>(edges.size());
  int cases = 0;
  for (const Op* op : all_ops()) {
    if (!op->is(kElementwise) || op->is(kInternal) || op->inputs.size() != 2 ||
        op->inputs[1].variadic || op->name == "min" || op->name == "max")
      continue;
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      if (!contains(op->inputs[0].dtypes, dtype) || !contains(op->inputs[1].dtypes, dtype))
        continue;
      std::vector<double> xs, ys;
      for (const double x : edges)
        for (const double y : edges) xs.push_back(x), ys.push_back(y);
      TestInputs inputs = {TestTensor(dtype, {n * n}, xs), TestTensor(dtype, {n * n}, ys)};
      const TestTensor expected = run_reference(op->name.c_str(), inputs);
      const Prepared prepared = prepare_cpu(op->name.c_str(), inputs);
      ASSERT_TRUE(prepared.kernel) << op->name << prepared.refusals;
      EXPECT_EQ(first_difference(TestTensor(dtype, {n * n}, ys), run(prepared, inputs)[0], expected,
                                 std::max(op->test.tolerance.of(dtype), 1e-6)),
                "")
          << op->name << " " << name(dtype);
      ++cases;
    }
  }
  EXPECT_GT(cases, 20);
}

// An activation is the same function wherever it stands: as an op, after a product, in a cell.
struct Form {
  const char* name;  // that of the activation there
  const char* op;    // the op that it is
  NamedAttrs attrs;  // of the op, with alpha and beta as given below
};

constexpr double kAlpha = 0.3, kBeta = 0.4;

const std::vector<double>& activation_edges() {
  static const std::vector<double> kEdges = {kNan, kInf, -kInf, -1000, -40, -12, -8,   -6.4, -5,
                                             -1,   -0.3, 0,     0.2,   0.3, 1,   6.25, 40,   1000};
  return kEdges;
}

void expect_form(const char* what, const Form& form, const TestTensor& given,
                 const TestTensor& actual, double tolerance) {
  const DType dtype = given.dtype();
  const TestTensor x(dtype, {given.count()}, given.values());
  const std::vector<double> xs = x.values(), as = actual.values(),
                            bs = run_reference(form.op, {x}, form.attrs).values();
  for (size_t i = 0; i < as.size(); ++i) {
    const double a = as[i], b = bs[i];
    const bool good = std::isnan(b)   ? std::isnan(a)
                      : std::isinf(b) ? a == b
                                      : std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
    EXPECT_TRUE(good && (tolerance > 0 || a == b || std::isnan(b)))
        << form.name << " of " << what << ", " << name(dtype) << ", at " << xs[i] << ": "
        << fmt::format("{:.17g}, the op gives {:.17g}", a, b);
  }
}

TEST(CpuEdges, ActivationsAfterProducts) {
  const std::vector<Form> forms = {
      {"relu", "relu", {}},
      {"clamp", "clamp", {{"min", kAlpha}, {"max", kBeta}}},
      {"leaky_relu", "leaky_relu", {{"alpha", kAlpha}}},
      {"elu", "elu", {{"alpha", kAlpha}}},
      {"gelu", "gelu", {}},
      {"gelu_tanh", "gelu", {{"approximate", "tanh"}}},
      {"silu", "silu", {}},
      {"sigmoid", "sigmoid", {}},
      {"tanh", "tanh", {}},
      {"hard_swish", "hard_swish", {}},
      {"hard_sigmoid", "hard_sigmoid", {{"alpha", kAlpha}, {"beta", kBeta}}},
  };
  const auto n = static_cast<int64_t>(activation_edges().size());
  for (const Form& form : forms)
    for (const DType dtype : {DType::kF64, DType::kF32}) {
      const NamedAttrs attrs = {
          {"activation", form.name}, {"act_alpha", kAlpha}, {"act_beta", kBeta}};
      TestInputs inputs = {TestTensor(dtype, {n, 1}, activation_edges()),
                           TestTensor(dtype, {1, 1}, {1})};
      expect_form("matmul on reference", form, *inputs[0], run_reference("matmul", inputs, attrs),
                  0);
      // A bound stands for NaN in fused kernels, and gelu makes NaN of infinity: "Numbers" in
      // docs/design.md.
      const std::string name = form.name;
      if (name == "relu" || name == "clamp" || name == "hard_sigmoid") continue;
      if (name == "gelu") inputs[0]->put({1, 0}, 1e30);
      const Prepared prepared = prepare_cpu("matmul", inputs, attrs);
      if (prepared.kernel)
        expect_form("matmul on cpu", form, *inputs[0], run(prepared, inputs)[0], 1e-6);
    }
}

TEST(CpuEdges, ActivationsOfCells) {
  const std::vector<Form> forms = {
      {"sigmoid", "sigmoid", {}},
      {"tanh", "tanh", {}},
      {"relu", "relu", {}},
      {"leakyrelu", "leaky_relu", {{"alpha", kAlpha}}},
      {"thresholdedrelu", "thresholded_relu", {{"alpha", kAlpha}}},
      {"hardsigmoid", "hard_sigmoid", {{"alpha", kAlpha}, {"beta", kBeta}}},
      {"elu", "elu", {{"alpha", kAlpha}}},
      {"softsign", "softsign", {}},
      {"softplus", "softplus", {}},
  };
  const auto n = static_cast<int64_t>(activation_edges().size());
  for (const Form& form : forms)
    for (const DType dtype : {DType::kF64, DType::kF32}) {
      const NamedAttrs attrs = {{"hidden_size", 1},
                                {"activations", form.name},
                                {"activation_alpha", std::vector<double>{kAlpha}},
                                {"activation_beta", std::vector<double>{kBeta}}};
      TestInputs inputs = {TestTensor(dtype, {1, n, 1}, activation_edges()),
                           TestTensor(dtype, {1, 1, 1}, {1}), TestTensor(dtype, {1, 1, 1}, {0})};
      expect_form("rnn on reference", form, *inputs[0], run_reference("rnn", inputs, attrs), 0);
      const Prepared prepared = prepare_cpu("rnn", inputs, attrs);
      ASSERT_TRUE(prepared.kernel) << prepared.refusals;
      expect_form("rnn on cpu", form, *inputs[0], run(prepared, inputs)[0], 1e-6);
    }
}

}  // namespace
}  // namespace anymps::testing
