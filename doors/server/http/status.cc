// SPDX-License-Identifier: Apache-2.0
#include "server/http/status.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "anymps/anymps.h"
#include "server/core/message_json.h"
#include "server/core/server.h"

namespace anymps::server::http {

// status.html, put into the program by CMake.
extern const char kStatusHtml[];
extern const size_t kStatusHtmlBytes;

namespace {

using nlohmann::ordered_json;

// When the program started.
const std::chrono::steady_clock::time_point kStart = std::chrono::steady_clock::now();

double uptime_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - kStart).count();
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

ordered_json devices() {
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < amps_device_count(); ++i) {
    const char* name = amps_device_name_at(i);
    amps_device* device = nullptr;
    amps_memory_stats memory{};
    memory.size = sizeof memory;
    amps_cache_stats cache{};
    cache.size = sizeof cache;
    if (!name || amps_device_get(name, &device) != AMPS_OK ||
        amps_device_memory_stats(device, &memory) != AMPS_OK ||
        amps_device_executable_cache(device, &cache) != AMPS_OK)
      continue;
    list.push_back({{"name", name},
                    {"allocated", memory.allocated},
                    {"reserved", memory.reserved},
                    {"pooled", memory.pooled},
                    {"peak_allocated", memory.peak_allocated},
                    {"packed_weights", memory.packed_weights},
                    {"compiled_graphs", cache.entries}});
  }
  return list;
}

ordered_json models(Server& server) {
  const inference::ModelStatisticsResponse statistics = server.statistics("", "");
  const std::vector<ModelFigures> figures = server.figures();
  ordered_json list = ordered_json::array();
  const inference::RepositoryIndexResponse index = server.repository_index(false);
  for (const auto& model : index.models()) {
    ordered_json entry = {{"name", model.name()},
                          {"version", model.version()},
                          {"state", model.state()},
                          {"reason", model.reason()}};
    for (const auto& counters : statistics.model_stats())
      if (counters.name() == model.name() && counters.version() == model.version())
        entry["statistics"] = to_json(counters, Defaults::kPrint);
    for (const ModelFigures& figure : figures) {
      if (figure.model != model.name() || figure.version != model.version()) continue;
      entry["pending"] = figure.pending;
      entry["latency_ms"] = figure.latency_ms;
      uint64_t failures = 0;
      for (const auto& [code, count] : figure.failures) failures += count;
      entry["failures"] = failures;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

Reply status_page() {
  Reply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.headers.emplace_back("Cache-Control", "no-cache");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  reply.headers.emplace_back("Content-Security-Policy",
                             "default-src 'none'; style-src 'unsafe-inline'; script-src "
                             "'unsafe-inline'; connect-src 'self'; img-src data:; "
                             "frame-ancestors 'none'");
  // The page is part of the program: it needs no owner.
  reply.body.push_back(
      {nullptr, reinterpret_cast<std::byte*>(const_cast<char*>(kStatusHtml)), kStatusHtmlBytes});
  return reply;
}

std::string status_json(Server& server) {
  const inference::ServerMetadataResponse metadata = server.metadata();
  const CacheFigures cache = server.cache_figures();
  ordered_json json = {{"server",
                        {{"name", metadata.name()},
                         {"version", metadata.version()},
                         {"live", server.live()},
                         {"ready", server.ready()},
                         {"uptime_seconds", uptime_seconds()}}},
                       {"models", models(server)},
                       {"memory", {{"resident", resident_bytes()}, {"devices", devices()}}}};
  if (cache.enabled)
    json["cache"] = {{"bytes", cache.bytes},     {"capacity", cache.capacity},
                     {"entries", cache.entries}, {"hits", cache.hits},
                     {"misses", cache.misses},   {"evictions", cache.evictions}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace anymps::server::http
