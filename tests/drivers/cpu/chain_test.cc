// SPDX-License-Identifier: Apache-2.0
// Chains (drivers/cpu/elementwise/chain.h): every f32 function in every place of one, for sizes
// about a block, gives bit for bit what its own kernel gives; and the exponentials that chains and
// kernels share reach both ends of f32's range.
#include <cmath>
#include <cstring>

#include "drivers/cpu/run_cpu.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

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

std::vector<const Op*> functions(DType dtype) {
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

TEST(CpuChain, EveryFunctionInEveryPlace) {
  int cases = 0;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const Op* op : functions(dtype))
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
