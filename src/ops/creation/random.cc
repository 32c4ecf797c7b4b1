// SPDX-License-Identifier: Apache-2.0
// Random numbers. All but random_state are pure functions of a state tensor, so that they may be
// folded, merged and repeated; random_state draws a new state at each run.
#include "ops/creation/random.h"

#include <cmath>

#include "ops/expect.h"
#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

void infer_state(InferContext& ctx) { ctx.set(0, DType::kI32, {kPhiloxWords}); }

void expect_state(const InferContext& ctx, size_t i) { expect_shape(ctx, i, {kPhiloxWords}); }

// Output 0 gets the shape of input i or of attribute `shape`.
void set_given_shape(InferContext& ctx, size_t i, DType dtype) {
  const std::optional<Dims> shape = ctx.ints(i, "shape");
  if (!shape) return set_fresh_shape(ctx, i, dtype);
  for (const Dim& extent : *shape)
    ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
              to_string(*shape));
  ctx.set(0, dtype, *shape);
}

void infer_random(InferContext& ctx) {
  expect_state(ctx, 0);
  const DType dtype = ctx.attrs.dtype("dtype");
  const std::string& distribution = ctx.attrs.s("distribution");
  const double low = ctx.attrs.f("low"), high = ctx.attrs.f("high");
  ctx.check(is_float(dtype) || (is_int(dtype) && distribution == "uniform"),
            "{} numbers of dtype {}", distribution, name(dtype));
  if (distribution != "normal")
    ctx.check(std::isfinite(low) && std::isfinite(high) && low <= high, "low is {} and high {}",
              low, high);
  if (is_int(dtype))
    ctx.check(
        low == std::floor(low) && high == std::floor(high) && high > low && high - low <= 0x1p32,
        "whole numbers from {} to below {}: the bounds must be whole and differ by 1 to 2^32", low,
        high);
  ctx.check(distribution == "uniform" || ctx.attrs.f("deviation") > 0, "deviation is {}",
            ctx.attrs.f("deviation"));
  set_given_shape(ctx, 1, dtype);
  if (ctx.output_count() > 1) ctx.set(1, DType::kI32, {kPhiloxWords});
}

void infer_bernoulli(InferContext& ctx) {
  expect_state(ctx, 1);
  ctx.set(0, ctx.attrs.dtype("dtype"), ctx.shape(0));
  if (ctx.output_count() > 1) ctx.set(1, DType::kI32, {kPhiloxWords});
}

void infer_multinomial(InferContext& ctx) {
  expect_rank(ctx, 0, 2, 2);
  expect_state(ctx, 1);
  const int64_t samples = ctx.attrs.i("samples");
  ctx.check(samples >= 1, "samples is {}, must be at least 1", samples);
  const DType dtype = ctx.attrs.dtype("dtype");
  ctx.check(contains(kIndex, dtype), "dtype is {}, must be i32 or i64", name(dtype));
  ctx.check(!ctx.shape(0)[1].is(0), "there are no classes to draw from");
  const Dim& classes = ctx.shape(0)[1];
  ctx.check(ctx.attrs.b("replacement") || !classes.known() || samples <= classes.value(),
            "{} of {} classes cannot be drawn without replacement", samples, classes.str());
  ctx.set(0, dtype, {ctx.shape(0)[0], samples});
  if (ctx.output_count() > 1) ctx.set(1, DType::kI32, {kPhiloxWords});
}

void infer_dropout(InferContext& ctx) {
  expect_state(ctx, 1);
  const double rate = ctx.attrs.f("rate");
  ctx.check(rate >= 0 && rate <= 1, "rate is {}, must be 0 to 1", rate);
  if (ctx.has(2) && ctx.type(2).ranked)
    ctx.check(ctx.shape(2).empty() || (ctx.rank(2) == 1 && may_equal(ctx.shape(2)[0], 1)),
              "rate has shape {}, must be a scalar", to_string(ctx.shape(2)));
  ctx.set(0, ctx.shape(0));
  if (ctx.output_count() > 1) ctx.set(1, DType::kBool, ctx.shape(0));
  if (ctx.output_count() > 2) ctx.set(2, DType::kI32, {kPhiloxWords});
}

const DTypeSet kState = bit(DType::kI32);
const char* const kStateDoc = "[7], of philox_state, random_state or another random";

}  // namespace

Distribution distribution_of(const Attrs& attrs) {
  using Kind = Distribution::Kind;
  const std::string& name = attrs.s("distribution");
  const DType dtype = attrs.dtype("dtype");
  Distribution::Parameters parameters{.wide = dtype == DType::kF64,
                                      .low = attrs.f("low"),
                                      .high = attrs.f("high"),
                                      .mean = attrs.f("mean"),
                                      .deviation = attrs.f("deviation")};
  if (name == "uniform") parameters.kind = is_int(dtype) ? Kind::kWhole : Kind::kUniform;
  if (name == "normal")
    parameters.kind = attrs.s("sampling") == "box_muller" ? Kind::kBoxMuller : Kind::kNormal;
  if (name == "truncated_normal") parameters.kind = Kind::kTruncated;
  return Distribution(parameters);
}

OP(philox_state)
    .doc(
        "The state of the Philox 4x32-10 generator at a counter of 128 bits, under a key of 64. A "
        "seed is a key.")
    .formula("y = [counter_low, counter_high, key, 0], as words of 32 bits, lowest first")
    .mps("randomPhiloxStateTensorWithSeed:name:")
    .mps("randomPhiloxStateTensorWithCounterLow:counterHigh:key:name:")
    .output("state", "i32")
    .attr("key", 0)
    .attr("counter_low", 0)
    .attr("counter_high", 0)
    .reference_only("seven numbers")
    .infer(infer_state)
    .sample({"zero", {}, {}})
    .sample({"all", {}, {{"key", 0x123456789ab}, {"counter_low", -1}, {"counter_high", 7}}});

OP(random_state)
    .doc("A new state of the Philox 4x32-10 generator at each run, for random without a seed.")
    .formula("y = a state that was not seen before")
    .mps("randomTensorWithShape:descriptor:name:")
    .mps("randomTensorWithShapeTensor:descriptor:name:")
    .mps("randomUniformTensorWithShape:name:")
    .mps("randomUniformTensorWithShapeTensor:name:")
    .output("state", "i32")
    .facts(kImpure)
    .reference_only("seven numbers")
    .infer(infer_state)
    .no_tests("its result differs at each run; see tests/drivers/reference/random_test.cc");

OP(random)
    .doc(
        "Random numbers of a distribution, and the state after them. Uniform ones are in [low, "
        "high), whole ones too; f16 and bf16 may round to high. Truncated normal ones are those "
        "of a normal distribution that lie in [low, high].")
    .formula("y[i] = distribution(Philox(state + i / 4)[i % 4])")
    .mps("randomTensorWithShape:descriptor:seed:name:")
    .mps("randomTensorWithShapeTensor:descriptor:seed:name:")
    .mps("randomTensorWithShape:descriptor:stateTensor:name:")
    .mps("randomTensorWithShapeTensor:descriptor:stateTensor:name:")
    .mps("randomUniformTensorWithShape:seed:name:")
    .mps("randomUniformTensorWithShapeTensor:seed:name:")
    .mps("randomUniformTensorWithShape:stateTensor:name:")
    .mps("randomUniformTensorWithShapeTensor:stateTensor:name:")
    .input("state", kState, "S", kStateDoc)
    .ints("shape")
    .output("y", "")
    .output("next_state", "i32", "optional")
    .attr("distribution", "uniform", {"uniform", "normal", "truncated_normal"})
    .attr("dtype", DType::kF32)
    .attr("low", 0.0)
    .attr("high", 1.0)
    .attr("mean", 0.0)
    .attr("deviation", 1.0)
    .attr("sampling", "inverse_cdf", {"inverse_cdf", "box_muller"}, "of normal numbers")
    .infer(infer_random)
    .sample({"uniform", {{7}}, {{"shape", Ints{3, 7}}}})
    .sample({"uniform f64", {{7}}, {{"shape", Ints{9}}, {"dtype", DType::kF64}, {"low", -3.0}}})
    .sample({"uniform f16", {{7}, {1}}, {{"dtype", DType::kF16}}, {{1, {5}}}})
    .sample({"whole",
             {{7}},
             {{"shape", Ints{50}}, {"dtype", DType::kI32}, {"low", -3.0}, {"high", 4.0}}})
    .sample({"normal", {{7}}, {{"shape", Ints{2, 50}}, {"distribution", "normal"}}})
    .sample({"box_muller",
             {{7}},
             {{"shape", Ints{51}}, {"distribution", "normal"}, {"sampling", "box_muller"}}})
    .sample({"truncated",
             {{7}},
             {{"shape", Ints{51}},
              {"distribution", "truncated_normal"},
              {"low", -1.0},
              {"mean", 0.5},
              {"deviation", 2.0}}})
    .sample({"large", {{7}}, {{"shape", Ints{70, 1031}}}})
    .sample({"scalar", {{7}}, {}})
    .sample({"empty", {{7}}, {{"shape", Ints{0, 3}}}});

OP(bernoulli)
    .doc("1 with the probability that x holds, else 0.")
    .formula("y[i] = uniform[i] < x[i]")
    .input("x", kFloat, "T", "probabilities")
    .input("state", kState, "S", kStateDoc)
    .output("y", "")
    .by_product("next_state", "i32")
    .attr("dtype", DType::kF32)
    .infer(infer_bernoulli)
    .domain(0, 1)
    .sample({"f32", {{3, 7}, {7}}, {}})
    .sample({"bool", {{33}, {7}}, {{"dtype", DType::kBool}}})
    .sample({"empty", {{0, 3}, {7}}, {{"dtype", DType::kI64}}});

OP(multinomial)
    .doc(
        "Classes drawn with probabilities in proportion to exp(x). Without replacement no class is "
        "drawn twice in a row of y: the first is drawn as with it, each next one from the rest.")
    .formula(
        "y[n,s] = the class in which uniform[n,s] * sum of exp(x[n]) falls; without replacement "
        "those with the lowest -ln(uniform[n,c]) / exp(x[n,c])")
    .input("x", kFloat, "T", "[batch, classes]: logarithms, of any sum")
    .input("state", kState, "S", kStateDoc)
    .output("y", "", "[batch, samples]")
    .by_product("next_state", "i32")
    .attr("samples", 1)
    .attr("dtype", DType::kI32)
    .attr("replacement", true, "whether a class may come again")
    .reference_only("a search for each sample")
    .infer(infer_multinomial)
    .no_layout_tests()
    .sample({"one", {{4, 5}, {7}}, {}})
    .sample({"many", {{2, 5}, {7}}, {{"samples", 33}, {"dtype", DType::kI64}}})
    .sample({"each once", {{3, 5}, {7}}, {{"samples", 5}, {"replacement", false}}})
    .sample({"empty", {{0, 5}, {7}}, {}});

OP(dropout)
    .doc(
        "Elements set to 0 with the probability `rate`, the others divided by 1 - rate; and which "
        "were kept.")
    .formula("y = uniform[i] >= rate ? x[i] / (1 - rate) : 0")
    .mps("dropoutTensor:rate:name:")
    .mps("dropoutTensor:rateTensor:name:")
    .input("x", kFloat)
    .input("state", kState, "S", kStateDoc)
    .optional("rate", kFloat, "R", "a scalar; wins over the attribute")
    .output("y")
    .by_product("mask", "bool")
    .by_product("next_state", "i32")
    .attr("rate", 0.5)
    .infer(infer_dropout)
    .sample({"half", {{3, 17}, {7}}, {}})
    .sample({"none", {{9}, {7}}, {{"rate", 0.0}}})
    .sample({"all", {{9}, {7}}, {{"rate", 1.0}}})
    .sample({"empty", {{0, 3}, {7}}, {}});

GRADIENT(dropout) {
  // The same state gives the same mask.
  std::vector<Term> inputs{ctx.dy(), ctx.x(1)};
  if (ctx.has(2)) inputs.push_back(ctx.x(2));
  ctx.set(0, ctx.add("dropout", inputs, ctx.attrs().named()));
  if (ctx.has(2) && ctx.wants(2)) ctx.refuse("the rate decides in steps which elements stay");
}

ZERO_GRADIENT(philox_state, "it has no inputs");
ZERO_GRADIENT(random_state, "it has no inputs");
ZERO_GRADIENT(random, "numbers follow from a state of integers");
ZERO_GRADIENT(bernoulli, "it is made of steps");
ZERO_GRADIENT(multinomial, "it is made of steps");

}  // namespace anymps
