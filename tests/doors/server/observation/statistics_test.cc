// SPDX-License-Identifier: Apache-2.0
// Counters and durations, counted as Triton counts them.
#include "server/observation/statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace anymps::server {
namespace {

Timestamps times() {
  Timestamps t;
  t.received = 1000, t.queued = 1100, t.dequeued = 1300, t.compute_start = 1400;
  t.compute_input_end = 1450, t.compute_output_start = 2450, t.compute_end = 2550;
  t.answered = 3000;
  return t;
}

TEST(Statistics, SuccessHasTheDurationsOfItsTimes) {
  ModelMetrics metrics;
  metrics.success(times(), 3);
  metrics.success(times(), 2);
  metrics.execution(5, 50, 1000, 100);
  const inference::ModelStatistics stats = metrics.read();
  EXPECT_EQ(stats.inference_count(), 5u);
  EXPECT_EQ(stats.execution_count(), 1u);
  EXPECT_GT(stats.last_inference(), 1'600'000'000'000u);
  const auto& totals = stats.inference_stats();
  EXPECT_EQ(totals.success().count(), 2u);
  EXPECT_EQ(totals.success().ns(), 4000u);
  EXPECT_EQ(totals.queue().count(), 2u);
  EXPECT_EQ(totals.queue().ns(), 600u);
  EXPECT_EQ(totals.compute_input().ns(), 100u);
  EXPECT_EQ(totals.compute_infer().ns(), 2000u);
  EXPECT_EQ(totals.compute_output().ns(), 200u);
  EXPECT_EQ(totals.compute_output().count(), 2u);
  EXPECT_EQ(totals.fail().count(), 0u);
  ASSERT_EQ(stats.batch_stats_size(), 1);
  EXPECT_EQ(stats.batch_stats(0).batch_size(), 5u);
  EXPECT_EQ(stats.batch_stats(0).compute_infer().count(), 1u);
  EXPECT_EQ(stats.batch_stats(0).compute_infer().ns(), 1000u);
}

TEST(Statistics, BatchesAreSortedBySize) {
  ModelMetrics metrics;
  for (uint64_t size : {8u, 1u, 8u, 4u}) metrics.execution(size, 1, 2, 3);
  const inference::ModelStatistics stats = metrics.read();
  ASSERT_EQ(stats.batch_stats_size(), 3);
  EXPECT_EQ(stats.batch_stats(0).batch_size(), 1u);
  EXPECT_EQ(stats.batch_stats(2).batch_size(), 8u);
  EXPECT_EQ(stats.batch_stats(2).compute_output().count(), 2u);
  EXPECT_EQ(stats.batch_stats(2).compute_output().ns(), 6u);
  EXPECT_EQ(stats.execution_count(), 4u);
}

TEST(Statistics, FailuresByCode) {
  ModelMetrics metrics;
  metrics.failure(times(), Code::kCancelled);
  metrics.failure(times(), Code::kUnavailable);
  metrics.failure(times(), Code::kUnavailable);
  const inference::ModelStatistics stats = metrics.read();
  EXPECT_EQ(stats.inference_stats().fail().count(), 3u);
  EXPECT_EQ(stats.inference_stats().fail().ns(), 6000u);
  EXPECT_EQ(stats.inference_count(), 0u);
  EXPECT_EQ(stats.last_inference(), 0u);
  EXPECT_EQ(metrics.failures(),
            (std::map<Code, uint64_t>{{Code::kUnavailable, 2}, {Code::kCancelled, 1}}));
}

TEST(Statistics, CacheHitsCountAsSuccessButNotAsComputation) {
  ModelMetrics metrics;
  Timestamps t = times();
  t.compute_start = t.compute_input_end = t.compute_output_start = t.compute_end = 0;
  metrics.cache_hit(t, 70, 2);
  metrics.cache_miss(30);
  const inference::ModelStatistics stats = metrics.read();
  EXPECT_EQ(stats.inference_stats().success().count(), 1u);
  EXPECT_EQ(stats.inference_stats().queue().count(), 1u);
  EXPECT_EQ(stats.inference_stats().queue().ns(), 200u);
  EXPECT_EQ(stats.inference_stats().compute_infer().count(), 0u);
  EXPECT_EQ(stats.inference_stats().cache_hit().count(), 1u);
  EXPECT_EQ(stats.inference_stats().cache_hit().ns(), 70u);
  EXPECT_EQ(stats.inference_stats().cache_miss().ns(), 30u);
  EXPECT_EQ(stats.inference_count(), 0u);
}

TEST(Statistics, QuantilesAreOfTheLastRequests) {
  ModelMetrics metrics;
  EXPECT_EQ(metrics.latency_ms({0.5, 0.9, 0.99})[0], 0);
  for (int i = 0; i < 3000; ++i) {
    Timestamps t;
    t.received = 1;
    // The last 1024 take 1..1024 ms.
    t.answered = 1 + uint64_t{1'000'000} * static_cast<uint64_t>(i < 1976 ? 5000 : i - 1975);
    metrics.success(t, 1);
  }
  const auto quantiles = metrics.latency_ms({0, 0.5, 1});
  EXPECT_NEAR(quantiles[0], 1, 1e-3);
  EXPECT_NEAR(quantiles[1], 513, 1.1);
  EXPECT_NEAR(quantiles[2], 1024, 1e-2);
}

TEST(Statistics, ThreadsDoNotLoseCounts) {
  ModelMetrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        metrics.queued(1);
        metrics.success(times(), 2);
        metrics.execution(2, 1, 1, 1);
        metrics.queued(-1);
        metrics.read();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics.read().inference_count(), 4000u);
  EXPECT_EQ(metrics.read().execution_count(), 2000u);
  EXPECT_EQ(metrics.pending(), 0);
}

}  // namespace
}  // namespace anymps::server
