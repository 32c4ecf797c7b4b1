// SPDX-License-Identifier: Apache-2.0
#include "server/observation/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <sstream>

#include "anymps/anymps.h"

namespace anymps::server {
namespace {

// A label's value between its quotes.
std::string escaped_label(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   type);
  }
  template <typename T>
  void value(const std::string& labels, T number) {
    fmt::format_to(std::back_inserter(text_), "{}{} {}\n", name_,
                   labels.empty() ? "" : "{" + labels + "}", number);
  }
  template <typename T>
  void gauge(std::string_view name, std::string_view help, T number) {
    family(name, "gauge", help);
    value("", number);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

using Statistics = inference::ModelStatistics;

struct Counter {
  const char* name;
  const char* help;
  uint64_t (*read)(const Statistics&);
};

constexpr uint64_t kNanos = 1000;  // a microsecond

const Counter kCounters[] = {
    {"nv_inference_request_success", "Number of successful inference requests, all batch sizes",
     [](const Statistics& s) { return s.inference_stats().success().count(); }},
    {"nv_inference_count", "Number of inferences performed (does not include cached requests)",
     [](const Statistics& s) { return s.inference_count(); }},
    {"nv_inference_exec_count",
     "Number of model executions performed (does not include cached requests)",
     [](const Statistics& s) { return s.execution_count(); }},
    {"nv_inference_request_duration_us",
     "Cumulative inference request duration in microseconds (includes cached requests)",
     [](const Statistics& s) {
       return (s.inference_stats().success().ns() + s.inference_stats().fail().ns()) / kNanos;
     }},
    {"nv_inference_queue_duration_us",
     "Cumulative inference queuing duration in microseconds (includes cached requests)",
     [](const Statistics& s) { return s.inference_stats().queue().ns() / kNanos; }},
    {"nv_inference_compute_input_duration_us",
     "Cumulative compute input duration in microseconds (does not include cached requests)",
     [](const Statistics& s) { return s.inference_stats().compute_input().ns() / kNanos; }},
    {"nv_inference_compute_infer_duration_us",
     "Cumulative compute inference duration in microseconds (does not include cached requests)",
     [](const Statistics& s) { return s.inference_stats().compute_infer().ns() / kNanos; }},
    {"nv_inference_compute_output_duration_us",
     "Cumulative inference compute output duration in microseconds (does not include cached "
     "requests)",
     [](const Statistics& s) { return s.inference_stats().compute_output().ns() / kNanos; }},
};

const Counter kCacheCounters[] = {
    {"nv_cache_num_hits_per_model", "Number of cache hits per model",
     [](const Statistics& s) { return s.inference_stats().cache_hit().count(); }},
    {"nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds",
     [](const Statistics& s) { return s.inference_stats().cache_hit().ns() / kNanos; }},
    {"nv_cache_num_misses_per_model", "Number of cache misses per model",
     [](const Statistics& s) { return s.inference_stats().cache_miss().count(); }},
    {"nv_cache_miss_duration_per_model",
     "Total cache miss (insert+lookup) duration per model, in microseconds",
     [](const Statistics& s) { return s.inference_stats().cache_miss().ns() / kNanos; }},
};

const char* reason(Code code) {
  switch (code) {
    case Code::kCancelled:
      return "CANCELED";
    case Code::kUnavailable:
      return "REJECTED";
    case Code::kInternal:
      return "BACKEND";
    default:
      return "OTHER";
  }
}

std::string model_labels(const std::string& model, const std::string& version) {
  return fmt::format("model=\"{}\",version=\"{}\"", escaped_label(model), escaped_label(version));
}

void counters(Page& page, const inference::ModelStatisticsResponse& statistics,
              std::span<const Counter> list) {
  for (const Counter& counter : list) {
    page.family(counter.name, "counter", counter.help);
    for (const Statistics& model : statistics.model_stats())
      page.value(model_labels(model.name(), model.version()), counter.read(model));
  }
}

void failures(Page& page, const std::vector<ModelFigures>& models) {
  page.family("nv_inference_request_failure", "counter",
              "Number of failed inference requests, all batch sizes");
  for (const ModelFigures& model : models) {
    std::map<std::string, uint64_t> counts{
        {"OTHER", 0}, {"BACKEND", 0}, {"CANCELED", 0}, {"REJECTED", 0}};
    for (const auto& [code, count] : model.failures) counts[reason(code)] += count;
    for (const auto& [why, count] : counts)
      page.value(fmt::format("model=\"{}\",reason=\"{}\",version=\"{}\"",
                             escaped_label(model.model), why, escaped_label(model.version)),
                 count);
  }
}

void cache_gauges(Page& page, const CacheFigures& cache) {
  page.gauge("nv_cache_util", "Cache utilization [0.0 - 1.0]",
             cache.capacity ? static_cast<double>(cache.bytes) / static_cast<double>(cache.capacity)
                            : 0.0);
  page.gauge("nv_cache_num_entries", "Number of responses stored in response cache", cache.entries);
  page.gauge("nv_cache_num_hits", "Number of cache hits in response cache", cache.hits);
  page.gauge("nv_cache_num_misses", "Number of cache misses in response cache", cache.misses);
  page.gauge("nv_cache_num_lookups", "Number of cache lookups in response cache",
             cache.hits + cache.misses);
  page.gauge("nv_cache_num_evictions", "Number of cache evictions in response cache",
             cache.evictions);
}

struct DeviceFigures {
  std::string labels;
  amps_memory_stats memory{};
  amps_cache_stats cache{};
};

struct EngineGauge {
  const char* name;
  const char* help;
  uint64_t (*read)(const DeviceFigures&);
};

const EngineGauge kEngineGauges[] = {
    {"anymps_memory_allocated_bytes", "Memory that tensors of the engine take, in bytes",
     [](const DeviceFigures& d) { return d.memory.allocated; }},
    {"anymps_memory_reserved_bytes", "Memory that the engine holds of the system, in bytes",
     [](const DeviceFigures& d) { return d.memory.reserved; }},
    {"anymps_memory_pooled_bytes", "Memory that is kept for reuse, in bytes",
     [](const DeviceFigures& d) { return d.memory.pooled; }},
    {"anymps_memory_peak_allocated_bytes", "Most memory that tensors took, in bytes",
     [](const DeviceFigures& d) { return d.memory.peak_allocated; }},
    {"anymps_packed_weights_bytes", "Weights that were laid out anew for kernels, in bytes",
     [](const DeviceFigures& d) { return d.memory.packed_weights; }},
    {"anymps_compiled_graphs", "Compiled graphs that are kept",
     [](const DeviceFigures& d) { return d.cache.entries; }},
};

}  // namespace

CpuFigures CpuMeter::read() {
  CpuFigures figures;
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;  // "cpu": user nice system idle iowait irq softirq steal
  uint64_t all = 0, idle = 0, value = 0;
  for (int i = 0; i < 8 && stat >> value; ++i) {
    all += value;
    if (i == 3 || i == 4) idle += value;
  }
  const uint64_t busy = all - idle;
  {
    const std::lock_guard lock(mutex_);
    if (all > all_ && busy >= busy_)
      utilization_ = static_cast<double>(busy - busy_) / static_cast<double>(all - all_);
    busy_ = busy, all_ = all;
    figures.utilization = utilization_;
  }
  std::ifstream memory("/proc/meminfo");
  uint64_t available = 0;
  for (std::string line; std::getline(memory, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name >> value;
    if (name == "MemTotal:") figures.total_bytes = value * 1024;
    if (name == "MemAvailable:") available = value * 1024;
  }
  figures.used_bytes = figures.total_bytes - std::min(available, figures.total_bytes);
  return figures;
}

std::string metrics_text(const inference::ModelStatisticsResponse& statistics,
                         const std::vector<ModelFigures>& models, const CacheFigures& cache,
                         const CpuFigures& cpu) {
  Page page;
  counters(page, statistics, kCounters);
  failures(page, models);
  if (cache.enabled) counters(page, statistics, kCacheCounters);
  page.family("nv_inference_pending_request_count", "gauge",
              "Instantaneous number of pending requests awaiting execution per-model.");
  for (const ModelFigures& model : models)
    page.value(model_labels(model.model, model.version), model.pending);
  page.gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", cpu.utilization);
  page.gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", cpu.total_bytes);
  page.gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", cpu.used_bytes);
  if (cache.enabled) cache_gauges(page, cache);
  return page.take();
}

std::string engine_metrics_text() {
  std::vector<DeviceFigures> devices;
  for (size_t i = 0; i < amps_device_count(); ++i) {
    const char* name = amps_device_name_at(i);
    amps_device* device = nullptr;
    DeviceFigures figures;
    figures.memory.size = sizeof figures.memory;
    figures.cache.size = sizeof figures.cache;
    if (!name || amps_device_get(name, &device) != AMPS_OK ||
        amps_device_memory_stats(device, &figures.memory) != AMPS_OK ||
        amps_device_executable_cache(device, &figures.cache) != AMPS_OK)
      continue;
    if (figures.memory.allocations == 0 && std::string_view(name) != "cpu") continue;
    figures.labels = fmt::format("device=\"{}\"", escaped_label(name));
    devices.push_back(figures);
  }
  Page page;
  for (const EngineGauge& gauge : kEngineGauges) {
    page.family(gauge.name, "gauge", gauge.help);
    for (const DeviceFigures& device : devices) page.value(device.labels, gauge.read(device));
  }
  return page.take();
}

std::string MetricsPage::text() const {
  return metrics_text(server_.statistics("", ""), server_.figures(), server_.cache_figures(),
                      cpu_.read()) +
         engine_metrics_text();
}

}  // namespace anymps::server
