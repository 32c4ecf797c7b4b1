// SPDX-License-Identifier: Apache-2.0
#include "runtime/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace anymps {

struct Profiler::Row {
  std::string key, op, kernel, detail, shapes;
  int64_t calls = 0, total_ns = 0, min_ns = INT64_MAX;
  double bytes = 0, flops = 0;  // of one call
};

namespace {

std::string clip(const std::string& name, size_t width) {
  std::string text = shown(name);
  if (text.size() <= width) return text;
  size_t end = width - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "~";
}

}  // namespace

void Profiler::add(ProfileEvent event) {
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

void Profiler::add_run(int64_t start_ns, int64_t duration_ns) {
  std::lock_guard lock(mutex_);
  runs_.push_back({start_ns, duration_ns});
}

void Profiler::reset() {
  std::lock_guard lock(mutex_);
  events_.clear();
  runs_.clear();
}

std::vector<ProfileEvent> Profiler::events() const {
  std::lock_guard lock(mutex_);
  return events_;
}

std::vector<Profiler::Row> Profiler::rows() const {
  std::map<std::string, Row> rows;
  for (const ProfileEvent& event : events()) {
    Row& row = rows[event.node + '\n' + event.kernel + '\n' + event.shapes];
    row.key = event.node;
    row.op = event.op;
    row.kernel = event.kernel;
    row.detail = event.detail;
    row.shapes = event.shapes;
    ++row.calls;
    row.total_ns += event.duration_ns;
    row.min_ns = std::min(row.min_ns, event.duration_ns);
    row.bytes = event.bytes;
    row.flops = event.flops;
  }
  std::vector<Row> list;
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  std::sort(list.begin(), list.end(),
            [](const Row& a, const Row& b) { return a.total_ns > b.total_ns; });
  return list;
}

std::string Profiler::table(size_t count) const {
  const std::vector<Row> list = rows();
  int64_t total = 0;
  for (const Row& row : list) total += row.total_ns;
  std::string text = fmt::format("{:<34} {:<18} {:<28} {:>6} {:>10} {:>6} {:>9} {:>8}\n", "node",
                                 "op", "kernel", "calls", "mean us", "%", "GFLOP/s", "GB/s");
  for (size_t i = 0; i < list.size() && i < count; ++i) {
    const Row& row = list[i];
    const double mean = static_cast<double>(row.total_ns) / static_cast<double>(row.calls);
    const std::string kernel = row.detail.empty() ? row.kernel : row.kernel + " " + row.detail;
    text += fmt::format(
        "{:<34} {:<18} {:<28} {:>6} {:>10.1f} {:>6.1f} {:>9.1f} {:>8.1f}\n", clip(row.key, 34),
        clip(row.op, 18), clip(kernel, 28), row.calls, mean / 1e3,
        total ? 100.0 * static_cast<double>(row.total_ns) / static_cast<double>(total) : 0,
        mean > 0 ? row.flops / mean : 0, mean > 0 ? row.bytes / mean : 0);
  }
  if (list.size() > count) text += fmt::format("… and {} more\n", list.size() - count);
  struct Sum {
    int64_t calls = 0, ns = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> by_op;
  for (const Row& row : list) {
    Sum& sum = by_op[{row.op, row.kernel}];
    sum.calls += row.calls;
    sum.ns += row.total_ns;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> sums(by_op.begin(), by_op.end());
  std::sort(sums.begin(), sums.end(), [](auto& a, auto& b) { return a.second.ns > b.second.ns; });
  text +=
      fmt::format("\n{:<22} {:<28} {:>8} {:>12} {:>6}\n", "op", "kernel", "calls", "total ms", "%");
  for (const auto& [key, sum] : sums)
    text +=
        fmt::format("{:<22} {:<28} {:>8} {:>12.3f} {:>6.1f}\n", key.first, key.second, sum.calls,
                    static_cast<double>(sum.ns) / 1e6,
                    total ? 100.0 * static_cast<double>(sum.ns) / static_cast<double>(total) : 0);
  return text;
}

std::string Profiler::json() const {
  std::string text = "{\"kernels\":[";
  bool first = true;
  for (const Row& row : rows()) {
    text += fmt::format(
        "{}{{\"node\":{},\"op\":{},\"kernel\":{},\"detail\":{},\"shapes\":{},\"calls\":{},"
        "\"total_ns\":{},\"min_ns\":{},\"bytes\":{:.0f},\"flops\":{:.0f}}}",
        first ? "" : ",", json_string(row.key), json_string(row.op), json_string(row.kernel),
        json_string(row.detail), json_string(row.shapes), row.calls, row.total_ns, row.min_ns,
        row.bytes, row.flops);
    first = false;
  }
  text += "],\"runs_ns\":[";
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < runs_.size(); ++i)
    text += fmt::format("{}{}", i ? "," : "", runs_[i].second);
  return text + "]}";
}

std::string Profiler::trace() const {
  std::lock_guard lock(mutex_);
  std::map<uint64_t, int> threads;
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  bool first = true;
  auto event = [&](const std::string& name, const std::string& category, int64_t start,
                   int64_t duration, int thread, const std::string& args) {
    text += fmt::format(
        "{}{{\"name\":{},\"cat\":{},\"ph\":\"X\",\"ts\":{:.3f},\"dur\":{:.3f},\"pid\":1,\"tid\":{},"
        "\"args\":{{{}}}}}",
        first ? "" : ",\n", json_string(name), json_string(category),
        static_cast<double>(start) / 1e3, static_cast<double>(duration) / 1e3, thread, args);
    first = false;
  };
  for (const auto& [start, duration] : runs_) event("run", "run", start, duration, 0, "");
  for (const ProfileEvent& item : events_) {
    const int thread =
        threads.try_emplace(item.thread, static_cast<int>(threads.size()) + 1).first->second;
    event(item.op, "kernel", item.start_ns, item.duration_ns, thread,
          fmt::format("\"node\":{},\"kernel\":{},\"detail\":{},\"shapes\":{},\"bytes\":{:.0f},"
                      "\"flops\":{:.0f}",
                      json_string(item.node), json_string(item.kernel), json_string(item.detail),
                      json_string(item.shapes), item.bytes, item.flops));
  }
  return text + "]}";
}

}  // namespace anymps
