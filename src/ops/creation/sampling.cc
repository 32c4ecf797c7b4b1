// SPDX-License-Identifier: Apache-2.0
// Random numbers whose distribution's parameters are tensors, whole numbers of 64 bits, and
// permutations. Pure functions of a state, like those of random.cc; each gives the state after it.
#include "ops/creation/sampling.h"

#include <limits>

#include "ops/expect.h"
#include "ops/gradient.h"
#include "ops/shape_rules.h"
#include "semantics/random/philox.h"

namespace anymps {

namespace {

const DTypeSet kPhilox = bit(DType::kI32);
const char* const kPhiloxDoc = "[7], of philox_state, random_state or another random op";

OpWriter& with_state(OpWriter& op) { return op.input("state", kPhilox, "S", kPhiloxDoc); }
OpWriter& with_next_state(OpWriter& op) { return op.by_product("next_state", "i32"); }

void set_next_state(InferContext& ctx, size_t state) {
  expect_shape(ctx, state, {kPhiloxWords});
  if (ctx.output_count() > 1) ctx.set(1, DType::kI32, {kPhiloxWords});
}

// Parameters that broadcast, then the state.
void infer_sampled(InferContext& ctx) {
  const size_t state = ctx.input_count() - 1;
  Dims shape = ctx.shape(0);
  for (size_t i = 1; i < state; ++i) shape = broadcast(shape, ctx.shape(i), ctx.op.name.c_str());
  ctx.set(0, shape);
  set_next_state(ctx, state);
}

OpWriter& sampled(OpWriter& op) {
  return op.with(with_state).output("y").with(with_next_state).infer(infer_sampled);
}

void infer_dirichlet(InferContext& ctx) {
  if (ctx.type(0).ranked) ctx.check(ctx.rank(0) >= 1, "concentration is a scalar");
  infer_sampled(ctx);
}

void infer_integers(InferContext& ctx) {
  const DType dtype = ctx.attrs.dtype("dtype");
  ctx.check(is_int(dtype), "dtype is {}, must be of integers", name(dtype));
  const auto [low, high] = integer_range(ctx.attrs);
  const bool fits = dtype == DType::kU64 ? static_cast<uint64_t>(low) <= static_cast<uint64_t>(high)
                                         : low <= high;
  ctx.check(fits, "no number lies between low {} and high {}", ctx.attrs.i("low"),
            ctx.attrs.i("high"));
  // As signed numbers, which the bounds of narrower types are.
  const bool holds = dispatch<kInt>(dtype, [low = low, high = high]<typename T>() {
    if constexpr (sizeof(T) == 8)
      return true;
    else
      return low >= std::numeric_limits<T>::lowest() && high <= std::numeric_limits<T>::max();
  });
  ctx.check(holds, "{} does not hold {} to {}", name(dtype), low, high);
  const std::optional<Dims> shape = ctx.ints(1, "shape");
  if (!shape) {
    set_fresh_shape(ctx, 1, dtype);
  } else {
    for (const Dim& extent : *shape)
      ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
                to_string(*shape));
    ctx.set(0, dtype, *shape);
  }
  set_next_state(ctx, 0);
}

void infer_randperm(InferContext& ctx) {
  const int64_t n = ctx.attrs.i("n");
  const DType dtype = ctx.attrs.dtype("dtype");
  ctx.check(n >= 0, "n is {}, must be at least 0", n);
  ctx.check(contains(kIndex, dtype), "dtype is {}, must be i32 or i64", name(dtype));
  ctx.check(dtype == DType::kI64 || n <= INT32_MAX, "{} numbers do not fit i32", n);
  ctx.set(0, dtype, {n});
  set_next_state(ctx, 0);
}

using Extents64 = std::vector<int64_t>;

}  // namespace

IntegerRange integer_range(const Attrs& attrs) {
  const int64_t low = attrs.i("low"), high = attrs.i("high");
  if (attrs.b("endpoint")) return {low, high};
  // Nothing lies below the lowest number: an empty range, as of equal bounds.
  if (static_cast<uint64_t>(high) == static_cast<uint64_t>(low)) return {1, 0};
  return {low, static_cast<int64_t>(static_cast<uint64_t>(high) - 1)};
}

#define SAMPLED_BY_ONE(op, text, math, parameter, low, high) \
  OP(op)                                                     \
      .doc(text)                                             \
      .formula(math)                                         \
      .input(parameter, kFloat)                              \
      .with(sampled)                                         \
      .domain(parameter, low, high)                          \
      .sample({"matrix", {{3, 17}, {7}}, {}})                \
      .sample({"large", {{5, 1031}, {7}}, {}})               \
      .sample({"scalar", {{}, {7}}, {}})                     \
      .sample({"empty", {{0, 3}, {7}}, {}})

#define SAMPLED_BY_TWO(op, text, math, first, low1, high1, second, low2, high2) \
  OP(op)                                                                        \
      .doc(text)                                                                \
      .formula(math)                                                            \
      .input(first, kFloat)                                                     \
      .input(second, kFloat)                                                    \
      .with(sampled)                                                            \
      .domain(first, low1, high1)                                               \
      .domain(second, low2, high2)                                              \
      .sample({"matrix", {{3, 17}, {3, 17}, {7}}, {}})                          \
      .sample({"broadcast", {{4, 1}, {9}, {7}}, {}})                            \
      .sample({"one each", {{}, {1031}, {7}}, {}})                              \
      .sample({"scalar", {{}, {}, {7}}, {}})                                    \
      .sample({"empty", {{0, 3}, {3}, {7}}, {}})

SAMPLED_BY_ONE(exponential, "Distances of events that come at a rate; NaN for a rate not above 0.",
               "y = -ln(uniform) / lambd", "lambd", 0.3, 3);
SAMPLED_BY_ONE(geometric,
               "How many trials the first success takes, at least 1; NaN for a chance not in "
               "(0, 1].",
               "y = ceil(ln(uniform) / ln(1 - p))", "p", 0.1, 0.9);
SAMPLED_BY_ONE(poisson,
               "How many events of a rate come in a unit of time; NaN for a negative rate.",
               "y = k with probability rate^k * exp(-rate) / k!", "rate", 0, 40);
SAMPLED_BY_ONE(standard_gamma,
               "Numbers of the gamma distribution of a shape, with scale 1; NaN for a shape not "
               "above 0. Small shapes give numbers that may round to 0.",
               "y with density y^(a-1) * exp(-y) / gamma(a), a = concentration", "concentration",
               0.2, 5);
SAMPLED_BY_TWO(normal, "Normal numbers; NaN for a negative deviation.",
               "y = mean + deviation * standard normal", "mean", -2, 2, "deviation", 0.3, 2);
SAMPLED_BY_TWO(log_normal, "Numbers whose logarithm is normal.",
               "y = exp(mean + deviation * standard normal)", "mean", -1, 1, "deviation", 0.3, 1);
SAMPLED_BY_TWO(cauchy, "Numbers of Cauchy's distribution; NaN for a scale not above 0.",
               "y = median + scale * tan(pi * (uniform - 1/2))", "median", -2, 2, "scale", 0.3, 2);
SAMPLED_BY_TWO(binomial, "How many of `count` trials succeed.",
               "y = k with probability binomial(count, k) * p^k * (1 - p)^(count-k)", "count", 0,
               60, "p", 0, 1);

OP(dirichlet)
    .doc("Parts of 1 along the last axis: numbers of gamma distributions over their sum.")
    .formula("y = standard_gamma(concentration) / its sum along the last axis")
    .input("concentration", kFloat, "T", "[…, classes]")
    .with(with_state)
    .output("y")
    .with(with_next_state)
    .reference_only("the numbers cost what standard_gamma does; lines are short")
    .infer(infer_dirichlet)
    .domain("concentration", 0.2, 5)
    .sample({"vector", {{5}, {7}}, {}})
    .sample({"lines", {{3, 4, 6}, {7}}, {}})
    .sample({"empty", {{0, 3}, {7}}, {}})
    .sample({"no classes", {{3, 0}, {7}}, {}});

OP(random_integers)
    .doc(
        "Whole numbers of any range of 64 bits, all alike in probability. Of u64 the bounds are "
        "read as unsigned.")
    .formula("y[i] = low + floor(Philox(state + i) * (high - low) / 2^128)")
    .with(with_state)
    .optional("shape", kIndex, "I", "wins over the attribute")
    .output("y", "")
    .with(with_next_state)
    .attr("shape", Extents64{})
    .attr("dtype", DType::kI64)
    .attr("low", 0)
    .attr("high", INT64_MAX)
    .attr("endpoint", false, "whether high itself may come")
    .infer(infer_integers)
    .sample({"bits", {{7}}, {{"shape", Extents64{33}}}})
    .sample({"all", {{7}}, {{"shape", Extents64{3, 5}}, {"low", INT64_MIN}, {"endpoint", true}}})
    .sample({"dice",
             {{7}},
             {{"shape", Extents64{3, 1031}}, {"low", 1}, {"high", 7}, {"dtype", DType::kU8}}})
    .sample({"scalar", {{7}}, {}})
    .sample({"empty", {{7}}, {{"shape", Extents64{0, 3}}}});

OP(randperm)
    .doc("The numbers 0 to n - 1 in random order.")
    .formula("y = the order of n random keys")
    .with(with_state)
    .output("y", "")
    .with(with_next_state)
    .attr("n", 0, "how many")
    .attr("dtype", DType::kI64)
    .reference_only("a sort of keys")
    .infer(infer_randperm)
    .sample({"some", {{7}}, {{"n", 33}}})
    .sample({"i32", {{7}}, {{"n", 5}, {"dtype", DType::kI32}}})
    .sample({"none", {{7}}, {}});

// With the random words held fast, y moves with the parameters as its formula says; numbers drawn
// by rejection move so that the part of the distribution below them stays.
GRADIENT(exponential) { ctx.set(0, -ctx.dy() * ctx.y() / ctx.x(0)); }

GRADIENT(standard_gamma) {
  ctx.set(0, ctx.dy() * ctx.add("standard_gamma_slope", {ctx.x(0), ctx.y()}));
}

static void location_and_scale(GradientContext& ctx, const Term& dy, const Term& y) {
  if (ctx.wants(0)) ctx.set(0, dy);
  if (ctx.wants(1)) ctx.set(1, dy * (y - ctx.x(0)) / ctx.x(1));
}
GRADIENT(normal) { location_and_scale(ctx, ctx.dy(), ctx.y()); }
GRADIENT(cauchy) { location_and_scale(ctx, ctx.dy(), ctx.y()); }
GRADIENT(log_normal) { location_and_scale(ctx, ctx.dy() * ctx.y(), ctx.y().op("log")); }

GRADIENT(dirichlet) {
  // The same state gives the same gammas.
  const Term gammas = ctx.add("standard_gamma", {ctx.x(0), ctx.x(1)});
  const Term y = gammas / ctx.sum(gammas, {-1});
  ctx.through({y});
}

ZERO_GRADIENT(geometric, "whole numbers move in steps");
ZERO_GRADIENT(poisson, "whole numbers move in steps");
ZERO_GRADIENT(binomial, "whole numbers move in steps");
ZERO_GRADIENT(random_integers, "numbers follow from a state of integers");
ZERO_GRADIENT(randperm, "numbers follow from a state of integers");

}  // namespace anymps
