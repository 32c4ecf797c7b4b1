// SPDX-License-Identifier: Apache-2.0
// Random numbers with tensors as parameters: moments, Kolmogorov's test against the distribution
// for continuous ones, Pearson's for whole ones, and the state after them.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "semantics/random/sampling.h"
#include "semantics/special/special_functions.h"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Numbers = std::vector<double>;
using Sizes = std::vector<int64_t>;

constexpr int64_t kCount = 20000;

TestTensor seeded(int64_t key) { return run_reference("philox_state", {}, {{"key", key}}); }

TestTensor filled(double value) {
  TestTensor tensor(DType::kF64, {kCount});
  for_each_index(tensor.shape(), [&](const Shape& at) { tensor.put(at, value); });
  return tensor;
}

Numbers sample(const char* op, const Numbers& parameters) {
  TestInputs inputs;
  for (const double p : parameters) inputs.emplace_back(filled(p));
  inputs.emplace_back(seeded(11));
  return run_reference(op, inputs).values();
}

struct Distribution {
  const char* op;
  Numbers parameters;
  std::function<double(double)> cdf;
};

double normal_part(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// The largest distance of the two distributions times sqrt(n) is above 1.95 once in a thousand
// times; the seeds are fixed.
TEST(ReferenceSampling, ContinuousOnesFollowTheirDistribution) {
  const std::vector<Distribution> cases = {
      {"exponential", {2.5}, [](double x) { return -std::expm1(-2.5 * x); }},
      {"normal", {1.5, 0.5}, [](double x) { return normal_part((x - 1.5) / 0.5); }},
      {"log_normal", {0.5, 1.5}, [](double x) { return normal_part((std::log(x) - 0.5) / 1.5); }},
      {"cauchy", {-1, 2}, [](double x) { return std::atan2(x + 1, 2) / M_PI + 0.5; }},
      {"standard_gamma", {0.05}, [](double x) { return special::igamma(0.05, x); }},
      {"standard_gamma", {0.7}, [](double x) { return special::igamma(0.7, x); }},
      {"standard_gamma", {1}, [](double x) { return special::igamma(1, x); }},
      {"standard_gamma", {30.5}, [](double x) { return special::igamma(30.5, x); }},
  };
  for (const auto& [op, parameters, cdf] : cases) {
    Numbers numbers = sample(op, parameters);
    std::sort(numbers.begin(), numbers.end());
    double distance = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double part = cdf(numbers[i]), n = static_cast<double>(kCount);
      distance = std::max({distance, std::abs(part - static_cast<double>(i) / n),
                           std::abs(part - static_cast<double>(i + 1) / n)});
    }
    EXPECT_LT(distance * std::sqrt(static_cast<double>(kCount)), 1.95) << op << parameters[0];
  }
}

// Pearson's sum over numbers that are expected at least ten times, the rest as one; its mean is
// about the number of terms, and five deviations are allowed.
void expect_counts(const std::string& label, const Numbers& numbers,
                   const std::function<double(double)>& chance, double highest) {
  double sum = 0, terms = 0, rest = kCount, rest_seen = 0;
  for (double k = 0; k <= highest; ++k) {
    const double expected = chance(k) * kCount;
    if (expected < 10) continue;
    const auto seen = static_cast<double>(std::count(numbers.begin(), numbers.end(), k));
    sum += (seen - expected) * (seen - expected) / expected;
    rest -= expected;
    rest_seen += seen;
    ++terms;
  }
  if (rest > 10) sum += std::pow(kCount - rest_seen - rest, 2) / rest;
  EXPECT_GT(terms, 1) << label;
  EXPECT_LT(sum, terms + 5 * std::sqrt(2 * terms)) << label;
}

TEST(ReferenceSampling, WholeOnesFollowTheirDistribution) {
  for (const double rate : {0.3, 4.0, 9.9, 10.1, 60.0})
    expect_counts(
        fmt::format("poisson {}", rate), sample("poisson", {rate}),
        [&](double k) { return std::exp(k * std::log(rate) - rate - std::lgamma(k + 1)); }, 200);
  for (const double p : {0.15, 0.8})
    expect_counts(
        fmt::format("geometric {}", p), sample("geometric", {p}),
        [&](double k) { return k < 1 ? 0 : p * std::pow(1 - p, k - 1); }, 200);
  for (const auto& [n, p] : std::vector<std::pair<double, double>>{
           {1, 0.3}, {12, 0.25}, {50, 0.5}, {100, 0.9}, {400, 0.3}})
    expect_counts(
        fmt::format("binomial {} {}", n, p), sample("binomial", {n, p}),
        [&, n = n, p = p](double k) {
          if (k > n) return 0.0;
          return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                          k * std::log(p) + (n - k) * std::log1p(-p));
        },
        n);
}

TEST(ReferenceSampling, MomentsOfLargeRates) {
  for (const auto& [op, parameters, mean, deviation] :
       std::vector<std::tuple<const char*, Numbers, double, double>>{
           {"poisson", {1e9}, 1e9, std::sqrt(1e9)},
           {"binomial", {1e9, 0.25}, 2.5e8, std::sqrt(1e9 * 0.1875)},
           {"standard_gamma", {1e6}, 1e6, 1e3}}) {
    const Numbers numbers = sample(op, parameters);
    double sum = 0, squares = 0;
    for (const double x : numbers) sum += x - mean;
    for (const double x : numbers) squares += (x - mean) * (x - mean);
    EXPECT_LT(std::abs(sum / kCount), 4 * deviation / std::sqrt(kCount)) << op;
    EXPECT_NEAR(std::sqrt(squares / kCount) / deviation, 1, 0.03) << op;
  }
}

TEST(ReferenceSampling, ParametersThatMakeNoDistribution) {
  const auto one = [](const char* op, Numbers parameters) {
    TestInputs inputs;
    for (const double p : parameters) inputs.emplace_back(TestTensor(DType::kF32, {1}, {p}));
    inputs.emplace_back(seeded(1));
    return run_reference(op, inputs).values()[0];
  };
  for (const double bad : {-1.0, kNan, kInf})
    for (const char* op : {"exponential", "geometric", "poisson", "standard_gamma"})
      EXPECT_TRUE(std::isnan(one(op, {bad}))) << op << bad;
  EXPECT_TRUE(std::isnan(one("normal", {0, -1})));
  EXPECT_TRUE(std::isnan(one("cauchy", {0, 0})));
  EXPECT_TRUE(std::isnan(one("binomial", {5, 1.5})));
  EXPECT_TRUE(std::isnan(one("binomial", {-1, 0.5})));
  EXPECT_EQ(one("poisson", {0}), 0);
  EXPECT_EQ(one("binomial", {9, 0}), 0);
  EXPECT_EQ(one("binomial", {9, 1}), 9);
  EXPECT_EQ(one("geometric", {1}), 1);
  EXPECT_EQ(one("normal", {3, 0}), 3);
}

TEST(ReferenceSampling, Dirichlet) {
  TestTensor concentration(DType::kF64, {kCount, 3});
  for_each_index(concentration.shape(), [&](const Shape& at) {
    concentration.put(at, std::array{0.5, 1.5, 3.0}.at(static_cast<size_t>(at[1])));
  });
  const Numbers y = run_reference("dirichlet", {concentration, seeded(4)}).values();
  std::array<double, 3> means{};
  double square = 0;
  for (size_t i = 0; i < y.size(); ++i) means.at(i % 3) += y[i] / kCount;
  for (size_t i = 0; i < y.size(); i += 3) {
    EXPECT_NEAR(y[i] + y[i + 1] + y[i + 2], 1, 1e-14);
    square += y[i + 2] * y[i + 2] / kCount;
  }
  EXPECT_NEAR(means[0], 0.1, 0.005);
  EXPECT_NEAR(means[1], 0.3, 0.006);
  EXPECT_NEAR(means[2], 0.6, 0.006);
  EXPECT_NEAR(square, 3.0 * 4 / (5 * 6), 0.006);
  // Gammas too small for a number still make parts of 1.
  const Numbers tiny =
      run_reference("dirichlet", {TestTensor(DType::kF64, {3}, {1e-5, 1e-5, 1e-5}), seeded(4)})
          .values();
  EXPECT_NEAR(std::accumulate(tiny.begin(), tiny.end(), 0.0), 1, 1e-14);
}

// The slope of a drawn number is that of the place with the same part of the distribution below.
TEST(ReferenceSampling, SlopeOfGammaNumbers) {
  for (const double shape : {0.3, 1.0, 4.5, 60.0, 150.0})
    for (const double x : {0.2 * shape, shape, 1.7 * shape}) {
      const double h = 1e-5 * shape;
      const double part = special::igamma(shape, x);
      const auto place = [&](double a) {  // igamma(a, place) = part, by bisection
        double low = 0, high = 10 * x + 10;
        for (int i = 0; i < 200; ++i)
          (special::igamma(a, (low + high) / 2) < part ? low : high) = (low + high) / 2;
        return (low + high) / 2;
      };
      const double slope = (place(shape + h) - place(shape - h)) / (2 * h);
      EXPECT_NEAR(special::standard_gamma_slope(shape, x), slope, 1e-6 * std::abs(slope) + 1e-7)
          << shape << " " << x;
    }
}

TEST(ReferenceSampling, IntegersOfAllBits) {
  const auto draw = [](NamedAttrs attrs) {
    attrs.emplace_back("shape", Sizes{kCount});
    return run_reference("random_integers", {seeded(9)}, attrs);
  };
  const TestTensor all = draw({{"low", INT64_MIN}, {"high", INT64_MAX}, {"endpoint", true}});
  uint64_t ones = 0, zeros = 0;
  double negative = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t x = all.data<int64_t>()[i];
    ones |= static_cast<uint64_t>(x);
    zeros |= ~static_cast<uint64_t>(x);
    negative += x < 0;
  }
  EXPECT_EQ(ones, ~uint64_t{0});
  EXPECT_EQ(zeros, ~uint64_t{0});
  EXPECT_NEAR(negative / kCount, 0.5, 0.02);
  // Three quarters of all numbers: a modulus would favour a third of them.
  const int64_t quarter = int64_t{1} << 62;
  const TestTensor three = draw({{"low", -2 * quarter}, {"high", quarter}});
  std::array<double, 3> thirds{};
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t x = three.data<int64_t>()[i];
    ASSERT_LT(x, quarter);
    thirds.at(x < -quarter ? 0 : x < 0 ? 1 : 2) += 1.0 / kCount;
  }
  for (const double third : thirds) EXPECT_NEAR(third, 1.0 / 3, 0.015);
  const Numbers dice = draw({{"low", 1}, {"high", 7}, {"dtype", DType::kU8}}).values();
  expect_counts(
      "dice", dice, [](double k) { return k >= 1 && k <= 6 ? 1.0 / 6 : 0; }, 10);
  EXPECT_EQ(error_of([&] {
              draw({{"low", 3}, {"high", 3}});
            }),
            "[random_integers] no number lies between low 3 and high 3");
  EXPECT_EQ(error_of([&] {
              draw({{"high", 257}, {"dtype", DType::kU8}});
            }),
            "[random_integers] u8 does not hold 0 to 256");
}

TEST(ReferenceSampling, Permutations) {
  const Numbers order = run_reference("randperm", {seeded(2)}, {{"n", 100}}).values();
  EXPECT_EQ(std::set<double>(order.begin(), order.end()).size(), 100u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 99);
  EXPECT_NE(order, run_reference("randperm", {seeded(3)}, {{"n", 100}}).values());
  // Each of 6 orders of 3 comes as often.
  Numbers orders;
  Philox state;
  for (int i = 0; i < kCount; ++i) {
    const std::vector<int64_t> p = permutation(state, 3);
    orders.push_back(static_cast<double>(2 * p[0] + (p[1] > p[2])));
    state = state.advanced(2);
  }
  expect_counts(
      "orders", orders, [](double k) { return k < 6 ? 1.0 / 6 : 0; }, 6);
}

TEST(ReferenceSampling, ClassesWithoutReplacement) {
  TestTensor logits(DType::kF64, {kCount, 3});
  for_each_index(logits.shape(), [&](const Shape& at) {
    logits.put(at, std::log(std::array{1.0, 2.0, 5.0}.at(static_cast<size_t>(at[1]))));
  });
  const Numbers y =
      run_reference("multinomial", {logits, seeded(6)}, {{"samples", 2}, {"replacement", false}})
          .values();
  Numbers pairs;
  for (size_t i = 0; i < y.size(); i += 2) {
    ASSERT_NE(y[i], y[i + 1]);
    pairs.push_back(3 * y[i] + y[i + 1]);
  }
  const std::array<double, 3> weights{1, 2, 5};
  expect_counts(
      "pairs", pairs,
      [&](double k) {
        const auto first = static_cast<size_t>(k) / 3, second = static_cast<size_t>(k) % 3;
        if (first > 2 || first == second) return 0.0;
        return weights.at(first) / 8 * weights.at(second) / (8 - weights.at(first));
      },
      8);
  const TestTensor one(DType::kF32, {1, 3}, {0, -kInf, -kInf});
  EXPECT_EQ(
      error_of([&] {
        run_reference("multinomial", {one, seeded(6)}, {{"samples", 2}, {"replacement", false}});
      }),
      "[multinomial] row 0 has 1 classes that can be drawn, not 2");
}

// A state that was used is not used again: all ops give the one after their numbers.
TEST(ReferenceSampling, StatesAfterwards) {
  const TestTensor p(DType::kF32, {10}, Numbers(10, 0.5));
  const auto counter = [](const std::vector<TestTensor>& results) {
    return results.back().values()[0];
  };
  EXPECT_EQ(counter(run_reference_all("exponential", {p, seeded(1)})), 10);
  EXPECT_EQ(counter(run_reference_all("normal", {p, p, seeded(1)})), 10);
  EXPECT_EQ(counter(run_reference_all("dirichlet", {p, seeded(1)})), 10);
  EXPECT_EQ(counter(run_reference_all("bernoulli", {p, seeded(1)})), 3);
  EXPECT_EQ(counter(run_reference_all("dropout", {p, seeded(1)})), 3);
  EXPECT_EQ(counter(run_reference_all("randperm", {seeded(1)}, {{"n", 10}})), 5);
  EXPECT_EQ(counter(run_reference_all("random_integers", {seeded(1)}, {{"shape", Sizes{10}}})), 10);
  const TestTensor x(DType::kF32, {2, 5}, Numbers(10, 0));
  EXPECT_EQ(counter(run_reference_all("multinomial", {x, seeded(1)}, {{"samples", 4}})), 2);
  EXPECT_EQ(counter(run_reference_all("multinomial", {x, seeded(1)}, {{"replacement", false}})), 3);
}

}  // namespace
}  // namespace anymps::testing
