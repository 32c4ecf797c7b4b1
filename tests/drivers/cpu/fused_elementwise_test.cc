// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "drivers/cpu/run_cpu.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

using Steps = std::vector<ProgramStep>;

void expect_program(const Steps& steps, TestInputs inputs, double tolerance,
                    const std::vector<size_t>& outputs = {}) {
  const Ints words = program(steps, outputs);
  SCOPED_TRACE(printed(words));
  expect_as_reference("fused_elementwise", std::move(inputs), {{"program", words}}, tolerance,
                      std::max<size_t>(outputs.size(), 1));
}

TEST(CpuFusedElementwise, Chains) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    // A last place of the dtype may move when a step's rounding differs.
    const double tolerance = dtype == DType::kBF16 ? 2e-2 : dtype == DType::kF16 ? 2e-3 : 1e-6;
    for (const Shape& shape :
         {Shape{}, Shape{5}, Shape{3, 7, 40}, Shape{700, 16}, Shape{2, 3000}}) {
      const Shape last = shape.empty() ? Shape{} : Shape{shape[shape.size() - 1]};
      const auto in = [&](int seed) {
        return TestTensor(dtype, shape).fill(static_cast<uint64_t>(seed));
      };
      const TestTensor row = TestTensor(dtype, last).fill(9), one = TestTensor(dtype, {}).fill(10);
      expect_program({{"mul", {x(0), x(1)}}, {"add", {t(0), number(0.5)}}, {"relu", {t(1)}}},
                     {in(1), in(2)}, tolerance);
      expect_program({{"add", {x(0), x(1)}}, {"sigmoid", {t(0)}}, {"mul", {t(0), t(1)}}},
                     {in(1), row}, tolerance);
      expect_program(
          {{"mul", {x(0), x(1)}}, {"exp", {t(0)}}, {"sub", {t(1), x(2)}}, {"tanh", {t(2)}}},
          {in(1), one, row}, tolerance);
      expect_program({{"pow", {x(0), number(2)}},
                      {"pow", {x(0), number(3)}},
                      {"add", {t(0), t(1)}},
                      {"leaky_relu", {t(2)}, {{"alpha", 0.1}}}},
                     {in(3)}, tolerance);
      expect_program({{"less", {x(0), x(1)}}, {"where", {t(0), x(1), x(0)}}}, {in(1), in(2)}, 0);
      expect_program({{"clamp", {x(0), absent(), number(1)}}}, {in(1)}, 0);
    }
  }
}

TEST(CpuFusedElementwise, MixedDtypes) {
  const TestTensor h = TestTensor(DType::kF16, {50}).fill(1),
                   f = TestTensor(DType::kF32, {50}).fill(2),
                   i = TestTensor(DType::kI32, {50}).fill(3, -9, 9);
  const ProgramStep to_f32 = {"cast", {x(0)}, {{"dtype", DType::kF32}}};
  expect_program({to_f32, {"mul", {t(0), x(1)}}, {"cast", {t(1)}, {{"dtype", DType::kF16}}}},
                 {h, f}, 1e-3);
  expect_program(
      {{"cast", {x(0)}, {{"dtype", DType::kF16}}}, {"cast", {t(0)}, {{"dtype", DType::kF32}}}}, {f},
      0);
  expect_program({to_f32, {"mul", {t(0), x(1)}}, {"cast", {t(1)}, {{"dtype", DType::kI32}}}},
                 {i, f}, 0);
  expect_program({{"greater", {x(0), number(0)}},
                  {"less", {x(1), number(0.5)}},
                  {"logical_and", {t(0), t(1)}}},
                 {i, f}, 0);
}

TEST(CpuFusedElementwise, StridedInputs) {
  const Steps steps = {{"mul", {x(0), x(1)}}, {"exp", {t(0)}}, {"sub", {t(1), x(0)}}};
  const TestTensor a = TestTensor(DType::kF32, {40, 30}).fill(1),
                   b = TestTensor(DType::kF32, {40, 30}).fill(2);
  expect_program(steps, {a.scrambled(), b.scrambled()}, 1e-6);
  const TestTensor wide = TestTensor(DType::kF32, {60, 700}).fill(1);
  expect_program(steps, {wide, wide.with_strides({1, 60})}, 1e-6, {0, 2, 1});
}

TEST(CpuFusedElementwise, LongProgramsKeepTemporariesApart) {
  Steps steps;
  for (size_t i = 0; i < 30; ++i) steps.push_back({"add", {i < 4 ? x(0) : t(i - 4), x(i % 2)}});
  steps.push_back({"add", {t(29), t(28)}});
  steps.push_back({"add", {t(27), t(26)}});
  steps.push_back({"add", {t(30), t(31)}});
  const TestTensor a = TestTensor(DType::kF32, {5000}).fill(1),
                   b = TestTensor(DType::kF32, {5000}).fill(2);
  expect_program(steps, {a, b}, 1e-5);
  expect_program(steps, {a, b}, 1e-5, {32, 5, 17, 5, 31});
}

TEST(CpuFusedElementwise, RefusesWhatIsTooLong) {
  Steps steps = {{"add", {x(0), number(1)}}};
  for (size_t i = 1; i < 100; ++i) steps.push_back({"exp", {t(i - 1)}});
  const TestInputs inputs = {TestTensor(DType::kF32, {5})};
  const auto refusals = [&](const Ints& words, size_t outputs) {
    const Prepared prepared =
        prepare_cpu("fused_elementwise", inputs, {{"program", words}}, outputs);
    EXPECT_FALSE(prepared.kernel);
    return prepared.refusals;
  };
  EXPECT_NE(refusals(program(steps), 1).find("too long"), std::string::npos);
  const std::vector<size_t> many(100, 0);
  EXPECT_NE(refusals(program({steps[0]}, many), 100).find("too long"), std::string::npos);
  // What no output needs is not computed.
  const Prepared prepared =
      prepare_cpu("fused_elementwise", inputs, {{"program", program(steps, {0})}});
  ASSERT_TRUE(prepared.kernel);
  EXPECT_EQ(prepared.kernel->detail(), "add");
}

// A parameter is read when the kernel runs: the same kernel, other numbers.
TEST(CpuFusedElementwise, ParametersAreReadAtRunTime) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    const TestTensor a = TestTensor(dtype, {70, 30}).fill(1);
    const Steps steps = {{"mul", {x(0), parameter(1, 2)}},
                         {"leaky_relu", {t(0)}, {{"alpha", parameter(1, 0)}}},
                         {"clamp", {t(1)}, {{"max", parameter(1, 1)}}},
                         {"where", {x(3), t(2), parameter(2, 0, dtype)}}};
    TestInputs inputs = {a, f64({3}, {0.3, 1.1, 1.7}), indices({1}, {-3}),
                         TestTensor(DType::kBool, {70, 30}).fill(4)};
    const NamedAttrs attrs = {{"program", program(steps)}};
    const Prepared prepared = prepare_cpu("fused_elementwise", inputs, attrs);
    ASSERT_TRUE(prepared.kernel) << prepared.refusals;
    for (const Row& row : {Row{0.3, 1.1, 1.7}, Row{-2, 0.1, -0.3}, Row{0, 1e9, 1}}) {
      inputs[1] = f64({3}, row);
      inputs[2] = indices({1}, {static_cast<int64_t>(row[2] * 10)});
      EXPECT_TRUE(same(run(prepared, inputs)[0], run_reference("fused_elementwise", inputs, attrs),
                       is_half(dtype) ? 1e-2 : 1e-6))
          << name(dtype);
    }
  }
}

TEST(CpuFusedElementwise, FillsAndCopies) {
  for (DType dtype : dtypes_of(kReal | kBoolean)) {
    TestInputs inputs = {f64({2}, {1, 3.7}), TestTensor(dtype, {5, 600}).fill(1, 0, 9).scrambled()};
    const NamedAttrs attrs = {
        {"program",
         program({{"identity", {parameter(0, 1, dtype)}}, {"identity", {x(1)}}}, {0, 1})}};
    const Prepared prepared = prepare_cpu("fused_elementwise", inputs, attrs, 2);
    ASSERT_TRUE(prepared.kernel) << prepared.refusals;
    const auto results = run(prepared, inputs);
    const auto expected = run_reference_all("fused_elementwise", inputs, attrs, 2);
    EXPECT_TRUE(same(results[0], expected[0])) << name(dtype);
    EXPECT_TRUE(same(results[1], *inputs[1])) << name(dtype);
    // A fill alone has the shape that is asked for.
    TestInputs numbers = {f64({1}, {3.7})};
    const NamedAttrs fill = {{"program", program({{"identity", {parameter(0, 0, dtype)}}})},
                             {"shape", Ints{3, 5}}};
    EXPECT_TRUE(same(run(prepare_cpu("fused_elementwise", numbers, fill), numbers)[0],
                     run_reference("fused_elementwise", numbers, fill)))
        << name(dtype);
  }
}

constexpr float kInf32 = std::numeric_limits<float>::infinity();

TestTensor run_op(const char* op, TestInputs inputs, const NamedAttrs& attrs = {}) {
  const Prepared prepared = prepare_cpu(op, inputs, attrs);
  EXPECT_TRUE(prepared.kernel) << op << prepared.refusals;
  return run(prepared, inputs)[0];
}

bool same_bits(const TestTensor& a, const TestTensor& b) {
  for (int64_t i = 0; i < a.desc().count(); ++i) {
    const double x = a.get({i}).real(), y = b.get({i}).real();
    if (!(x == y && std::signbit(x) == std::signbit(y)) && !(std::isnan(x) && std::isnan(y)))
      return false;
  }
  return true;
}

std::vector<const Op*> functions_of(DType dtype) {
  std::vector<const Op*> ops;
  for (const Op* op : all_ops()) {
    if (!op->is(kElementwise) || op->is(kInternal) || op->is(kImpure) || op->name == "cast")
      continue;
    if (op->inputs.empty() || op->inputs.size() > 2 || op->inputs[0].variadic) continue;
    bool fits = contains(op->inputs[0].dtypes, dtype) && op->outputs[0].type != "bool";
    for (const auto& input : op->inputs) fits = fits && input.type == op->inputs[0].type;
    if (fits && op->outputs[0].type == op->inputs[0].type) ops.push_back(op);
  }
  return ops;
}

// Chains (drivers/cpu/elementwise/chain.h), for sizes about a block: bit for bit what the
// functions' own kernels give.
TEST(CpuChain, EveryFunctionInEveryPlace) {
  int cases = 0;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const Op* op : functions_of(dtype))
      for (const int64_t n : {1, 31, 64, 65, 300}) {
        const char* name = op->name.c_str();
        SCOPED_TRACE(fmt::format("{} {} {}", name, anymps::name(dtype), n));
        const TestTensor a = TestTensor(dtype, {n}).fill(1, -3, 3),
                         b = TestTensor(dtype, {n}).fill(2, -2, 2);
        const TestTensor before = run_op("neg", {a});
        const double half = 0.5;
        const TestTensor number_tensor = run_op("cast", {f64({}, {half})}, {{"dtype", dtype}});
        std::vector<std::pair<std::vector<ProgramArg>, TestInputs>> forms;
        if (op->inputs.size() == 1)
          forms = {{{t(0)}, {before}}};
        else
          forms = {{{t(0), x(1)}, {before, b}},
                   {{x(1), t(0)}, {b, before}},
                   {{t(0), t(0)}, {before, before}},
                   {{t(0), number(half)}, {before, number_tensor}},
                   {{number(half), t(0)}, {number_tensor, before}},
                   {{x(1), x(0)}, {b, a}}};
        for (const auto& [args, separate] : forms) {
          // The result is read at once, later, and by the caller.
          TestInputs inputs = {a, b};
          const NamedAttrs attrs = {{"program", program({{"neg", {x(0)}},
                                                         {name, args},
                                                         {"neg", {t(1)}},
                                                         {"add", {x(1), t(0)}},
                                                         {"add", {t(1), t(3)}}},
                                                        {1, 2, 4})}};
          const Prepared prepared = prepare_cpu("fused_elementwise", inputs, attrs, 3);
          ASSERT_TRUE(prepared.kernel) << prepared.refusals;
          const auto results = run(prepared, inputs);
          const TestTensor y = run_op(name, separate);
          EXPECT_TRUE(same_bits(results[0], y));
          EXPECT_TRUE(same_bits(results[1], run_op("neg", {y})));
          EXPECT_TRUE(same_bits(results[2], run_op("add", {y, run_op("add", {b, before})})));
          if (HasFailure()) return;
          ++cases;
        }
      }
  EXPECT_GT(cases, 1000);
}

// Against f64, rounded once; where f32 has no more digits, within one step of it.
TEST(CpuChain, ExponentialsReachTheEndsOfTheRange) {
  struct Case {
    const char* op;
    double (*exact)(double);
    float low, high;
  };
  const Case cases[] = {{"exp", std::exp, -106, 91},
                        {"exp2", std::exp2, -153, 131},
                        {"exp10", [](double v) { return std::pow(10, v); }, -47, 40},
                        {"expm1", std::expm1, -30, 91}};
  constexpr int64_t kCount = 20000;
  for (const Case& c : cases) {
    TestTensor x(DType::kF32, {kCount});
    float* in = static_cast<float*>(x.ptr());
    for (int64_t i = 0; i < kCount; ++i)
      in[i] = c.low + (c.high - c.low) * static_cast<float>(i) / static_cast<float>(kCount - 1);
    const float ends[] = {kInf32, -kInf32, NAN, 0.0f, -0.0f, 1e-40f, -1e-40f, 3e38f, -3e38f};
    std::copy(std::begin(ends), std::end(ends), in + 1000);
    TestTensor y = run_op(c.op, {x});
    const float* out = static_cast<const float*>(y.ptr());
    int subnormal = 0, infinite = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const double exact = c.exact(in[i]);
      const auto expected = static_cast<float>(exact);
      if (std::isnan(in[i])) {
        EXPECT_TRUE(std::isnan(out[i]));
        continue;
      }
      infinite += std::isinf(out[i]);
      subnormal += std::fpclassify(out[i]) == FP_SUBNORMAL;
      const double step = std::max(std::abs(exact) * 0x1p-23, 0x1p-149);
      if (std::isinf(expected) || std::isinf(out[i])) {
        EXPECT_GE(exact, 3.4028e38) << c.op << " of " << in[i];
      } else {
        ASSERT_LE(std::abs(out[i] - exact), 3 * step) << c.op << " of " << in[i];
      }
    }
    EXPECT_GT(infinite, 100) << c.op;
    EXPECT_TRUE(c.exact(c.low) < 0 || subnormal > 100) << c.op << " has " << subnormal;
    // An element has the same result wherever it lies.
    for (int64_t n = 1; n < 70; ++n)
      for (const int64_t first : {int64_t{0}, int64_t{990}, kCount - 70}) {
        TestTensor part(DType::kF32, {n});
        std::memcpy(part.ptr(), in + first, static_cast<size_t>(n) * sizeof(float));
        const TestTensor some = run_op(c.op, {part});
        const float* at = static_cast<const float*>(some.ptr());
        for (int64_t i = 0; i < n; ++i)
          ASSERT_TRUE(at[i] == out[first + i] || (std::isnan(at[i]) && std::isnan(out[first + i])))
              << c.op << " of " << in[first + i] << " among " << n;
      }
  }
}

}  // namespace
}  // namespace anymps::testing
