// SPDX-License-Identifier: Apache-2.0
#include "server/observation/metrics.h"

#include <gtest/gtest.h>

namespace anymps::server {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

inference::ModelStatisticsResponse statistics(const std::string& name) {
  inference::ModelStatisticsResponse response;
  auto* model = response.add_model_stats();
  model->set_name(name);
  model->set_version("2");
  model->set_inference_count(7);
  model->set_execution_count(3);
  auto* stats = model->mutable_inference_stats();
  stats->mutable_success()->set_count(5);
  stats->mutable_success()->set_ns(12'345'678);
  stats->mutable_queue()->set_ns(9'999);
  stats->mutable_cache_hit()->set_count(4);
  return response;
}

TEST(Metrics, CountersAndGaugesHaveTritonsNames) {
  ModelFigures figures{"m", "2", 6, {{Code::kCancelled, 2}, {Code::kNotFound, 1}}, {}};
  const std::string text =
      metrics_text(statistics("m"), {figures}, {true, 50, 100, 3, 4, 1, 0}, {0.5, 1000, 400});
  for (const char* line :
       {R"(nv_inference_request_success{model="m",version="2"} 5)",
        R"(nv_inference_request_failure{model="m",reason="CANCELED",version="2"} 2)",
        R"(nv_inference_request_failure{model="m",reason="OTHER",version="2"} 1)",
        R"(nv_inference_request_failure{model="m",reason="REJECTED",version="2"} 0)",
        R"(nv_inference_count{model="m",version="2"} 7)",
        R"(nv_inference_exec_count{model="m",version="2"} 3)",
        R"(nv_inference_request_duration_us{model="m",version="2"} 12345)",
        R"(nv_inference_queue_duration_us{model="m",version="2"} 9)",
        R"(nv_inference_pending_request_count{model="m",version="2"} 6)",
        R"(nv_cache_num_hits_per_model{model="m",version="2"} 4)", "nv_cache_util 0.5",
        "nv_cache_num_lookups 5", "nv_cpu_utilization 0.5", "nv_cpu_memory_used_bytes 400",
        "# TYPE nv_inference_count counter", "# TYPE nv_cpu_utilization gauge"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST(Metrics, LabelsAreEscaped) {
  const std::string text = metrics_text(statistics("a\"b\\c\nd"), {}, {}, {});
  EXPECT_TRUE(has_line(text, R"(nv_inference_count{model="a\"b\\c\nd",version="2"} 7)")) << text;
}

TEST(Metrics, NothingOfTheCacheIfThereIsNone) {
  EXPECT_EQ(metrics_text(statistics("m"), {}, {}, {}).find("nv_cache"), std::string::npos);
}

TEST(Metrics, TheMachine) {
  CpuMeter meter;
  const CpuFigures figures = meter.read();
  EXPECT_GT(figures.total_bytes, 0U);
  EXPECT_GT(figures.used_bytes, 0U);
  EXPECT_LE(figures.used_bytes, figures.total_bytes);
  EXPECT_GE(figures.utilization, 0.0);
  EXPECT_LE(figures.utilization, 1.0);
}

TEST(Metrics, TheEngine) {
  const std::string text = engine_metrics_text();
  EXPECT_NE(text.find("anymps_memory_allocated_bytes{device=\"cpu\"} "), std::string::npos) << text;
}

}  // namespace
}  // namespace anymps::server
