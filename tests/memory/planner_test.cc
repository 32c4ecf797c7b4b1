// SPDX-License-Identifier: Apache-2.0
#include "memory/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "base/error.h"

namespace anymps {
namespace {

// Empty when the plan is sound, else what is wrong with it.
std::string fault(const std::vector<PlannedTensor>& tensors, const MemoryPlan& plan) {
  if (plan.offsets.size() != tensors.size()) return "an offset is missing";
  if (plan.arena_size < plan.lower_bound) return "the lower bound is none";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PlannedTensor& a = tensors[i];
    size_t start = plan.offsets[i], end = start + a.size;
    if (start % a.alignment) return fmt::format("tensor {} is not aligned", i);
    if (end > plan.arena_size) return fmt::format("tensor {} ends outside the arena", i);
    for (size_t j = 0; j < i; ++j) {
      const PlannedTensor& b = tensors[j];
      if (a.alias_group >= 0 && a.alias_group == b.alias_group) {
        if (start != plan.offsets[j]) return fmt::format("aliases {} and {} are apart", i, j);
        continue;
      }
      bool same_time = a.first_use <= b.last_use && b.first_use <= a.last_use;
      bool same_place = start < plan.offsets[j] + b.size && plan.offsets[j] < end;
      if (same_time && same_place && a.size && b.size)
        return fmt::format("tensors {} and {} overlap", i, j);
    }
  }
  return "";
}

// A network-like schedule: short lives mostly, some residuals that live long.
std::vector<PlannedTensor> random_tensors(size_t count, unsigned seed, bool with_groups) {
  std::mt19937 random(seed);
  std::vector<PlannedTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    PlannedTensor tensor;
    tensor.size = random() % 8 == 0 ? 0 : (random() % 64 + 1) * (size_t{1} << (random() % 14));
    tensor.alignment = size_t{1} << (random() % 9);
    tensor.first_use = i;
    tensor.last_use = i + 1 + (random() % 10 == 0 ? random() % 60 : random() % 4);
    if (with_groups && random() % 6 == 0) tensor.alias_group = static_cast<int>(i / 8);
    tensors.push_back(tensor);
  }
  return tensors;
}

// Live ranges that overlap, by walking through time: fault() looks at all pairs, which is too many
// here.
std::string fault_of_many(const std::vector<PlannedTensor>& tensors, const MemoryPlan& plan) {
  std::map<size_t, std::vector<size_t>> starts, ends;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (plan.offsets[i] % tensors[i].alignment) return fmt::format("tensor {} is not aligned", i);
    if (plan.offsets[i] + tensors[i].size > plan.arena_size)
      return fmt::format("tensor {} ends outside the arena", i);
    if (tensors[i].size == 0) continue;
    starts[tensors[i].first_use].push_back(i);
    ends[tensors[i].last_use + 1].push_back(i);
  }
  std::map<size_t, size_t> live;  // offset, end
  for (const auto& [step, begun] : starts) {
    for (; !ends.empty() && ends.begin()->first <= step; ends.erase(ends.begin()))
      for (const size_t i : ends.begin()->second) live.erase(plan.offsets[i]);
    for (const size_t i : begun) {
      const size_t end = plan.offsets[i] + tensors[i].size;
      const auto [place, fresh] = live.emplace(plan.offsets[i], end);
      if (!fresh || (std::next(place) != live.end() && std::next(place)->first < end) ||
          (place != live.begin() && std::prev(place)->second > plan.offsets[i]))
        return fmt::format("tensor {} overlaps another", i);
    }
  }
  return "";
}

TEST(Planner, VeryManyTensorsTakeTimeInProportion) {
  for (const unsigned seed : {1u, 2u}) {
    const std::vector<PlannedTensor> tensors = random_tensors(200'000, seed, false);
    const MemoryPlan plan = plan_memory(tensors);
    EXPECT_EQ(fault_of_many(tensors, plan), "");
    EXPECT_LE(plan.ratio(), 1.5);
  }
  std::vector<PlannedTensor> all_at_once(200'000);
  for (PlannedTensor& tensor : all_at_once) tensor = {64, 64, 0, 1, -1};
  const MemoryPlan plan = plan_memory(all_at_once);
  EXPECT_EQ(fault_of_many(all_at_once, plan), "");
  EXPECT_EQ(plan.ratio(), 1.0);
}

TEST(Planner, NothingNeedsNothing) {
  MemoryPlan plan = plan_memory({});
  EXPECT_EQ(plan.arena_size, 0u);
  EXPECT_EQ(plan.ratio(), 1.0);
}

TEST(Planner, ChainNeedsTwoTensors) {
  std::vector<PlannedTensor> chain;
  for (size_t i = 0; i < 10; ++i) chain.push_back({1024, 64, i, i + 1});
  MemoryPlan plan = plan_memory(chain);
  EXPECT_EQ(fault(chain, plan), "");
  EXPECT_EQ(plan.arena_size, 2048u);
  EXPECT_EQ(plan.lower_bound, 2048u);
}

TEST(Planner, LastUseIsIncluded) {
  std::vector<PlannedTensor> tensors = {{100, 1, 0, 1}, {100, 1, 1, 2}, {100, 1, 2, 3}};
  MemoryPlan plan = plan_memory(tensors);
  EXPECT_EQ(fault(tensors, plan), "");
  EXPECT_EQ(plan.arena_size, 200u);
}

TEST(Planner, FillsTheTightestGap) {
  // At step 5 there are gaps of 600 and 300 bytes between the two tensors that live throughout. The
  // tensor of 250 must leave the larger gap to the three of 200.
  std::vector<PlannedTensor> tensors = {{600, 1, 0, 0}, {500, 1, 0, 9}, {300, 1, 0, 0},
                                        {290, 1, 0, 9}, {250, 1, 5, 5}, {200, 1, 5, 5},
                                        {200, 1, 5, 5}, {200, 1, 5, 5}};
  MemoryPlan plan = plan_memory(tensors);
  EXPECT_EQ(plan.offsets, (std::vector<size_t>{0, 600, 1100, 1400, 1100, 0, 200, 400}));
  EXPECT_EQ(plan.arena_size, plan.lower_bound);
}

TEST(Planner, AliasesShareTheLargestOfThem) {
  std::vector<PlannedTensor> tensors = {
      {100, 64, 0, 1, 3}, {400, 16, 1, 2, 3}, {200, 256, 2, 5, 3}, {50, 1, 4, 4}};
  MemoryPlan plan = plan_memory(tensors);
  EXPECT_EQ(fault(tensors, plan), "");
  EXPECT_EQ(plan.lower_bound, 450u);
  EXPECT_EQ(plan.arena_size, 450u);
  EXPECT_EQ(plan.arena_alignment, 256u);
}

TEST(Planner, RandomTensorsNeverOverlap) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto tensors = random_tensors(20 + seed * 5, seed, seed % 2);
    MemoryPlan plan = plan_memory(tensors);
    ASSERT_EQ(fault(tensors, plan), "") << "seed " << seed;
    ASSERT_LE(plan.ratio(), 1.35) << "seed " << seed;
  }
}

TEST(Planner, SameInputGivesTheSamePlan) {
  auto tensors = random_tensors(300, 5, true);
  EXPECT_EQ(plan_memory(tensors).offsets, plan_memory(tensors).offsets);
}

TEST(Planner, FiveThousandTensorsAreQuick) {
  auto tensors = random_tensors(5000, 9, false);
  auto start = std::chrono::steady_clock::now();
  MemoryPlan plan = plan_memory(tensors);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("ms", std::to_string(seconds.count() * 1e3));
  RecordProperty("ratio", std::to_string(plan.ratio()));
  // Far above what it takes, even with sanitizers on a busy machine; far below a cubic algorithm.
  EXPECT_LT(seconds.count(), 5.0);
  EXPECT_EQ(fault(tensors, plan), "");
}

TEST(Planner, RefusesBadInput) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  EXPECT_THROW(plan_memory({{1, 3, 0, 0}}), Error);
  EXPECT_THROW(plan_memory({{1, 0, 0, 0}}), Error);
  EXPECT_THROW(plan_memory({{1, 1, 2, 1}}), Error);
  try {
    plan_memory({{kMax / 2, 64, 0, 0}, {kMax / 2 + 1, 64, 0, 0}});
    FAIL() << "planned more than the address space";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
  }
}

}  // namespace
}  // namespace anymps
