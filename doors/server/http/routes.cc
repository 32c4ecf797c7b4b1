// SPDX-License-Identifier: Apache-2.0
#include "server/http/routes.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "server/http/transport/message.h"

namespace anymps::server::http {
namespace {

using Segments = std::span<const std::string>;

struct ModelAction {
  std::string_view name;
  Topic topic;
};
constexpr ModelAction kModelActions[] = {
    {"infer", Topic::kInfer},        {"generate", Topic::kGenerate},
    {"ready", Topic::kModelReady},   {"generate_stream", Topic::kGenerateStream},
    {"config", Topic::kModelConfig}, {"stats", Topic::kStatistics}};

Route model_route(Segments rest) {
  Route route;
  if (rest.size() == 1 && rest[0] == "stats") {
    route.topic = Topic::kStatistics;
    return route;
  }
  if (rest.empty() || rest[0].empty()) return {};
  route.model = rest[0];
  rest = rest.subspan(1);
  if (rest.size() >= 2 && rest[0] == "versions") {
    route.version = rest[1];
    if (route.version.empty() || !std::all_of(route.version.begin(), route.version.end(),
                                              [](char c) { return c >= '0' && c <= '9'; }))
      return {};
    rest = rest.subspan(2);
  }
  if (rest.empty()) route.topic = Topic::kModelMetadata;
  if (rest.size() == 1)
    for (const ModelAction& action : kModelActions)
      if (rest[0] == action.name) route.topic = action.topic;
  if (rest.size() == 2 && rest[0] == "trace" && rest[1] == "setting")
    route.topic = Topic::kTraceSetting;
  return route;
}

Route repository_route(Segments rest) {
  Route route;
  const bool named = !rest.empty() && rest[0] != "index" && rest[0] != "models";
  if (named) {
    route.repository = rest[0];
    rest = rest.subspan(1);
  }
  if (rest.size() == 1 && rest[0] == "index") route.topic = Topic::kRepositoryIndex;
  if (rest.size() == 3 && rest[0] == "models" && !rest[1].empty()) {
    route.model = rest[1];
    route.topic = rest[2] == "load"     ? Topic::kLoad
                  : rest[2] == "unload" ? Topic::kUnload
                                        : Topic::kUnknown;
  }
  return route;
}

Route memory_route(Segments rest, Topic topic) {
  Route route;
  if (rest.size() == 3 && rest[0] == "region" && !rest[1].empty()) {
    route.region = rest[1];
    rest = rest.subspan(2);
  }
  if (rest.size() == 1 &&
      (rest[0] == "status" || rest[0] == "register" || rest[0] == "unregister")) {
    route.action = rest[0];
    route.topic = topic;
  }
  return route;
}

}  // namespace

Route find_route(std::string_view path) {
  if (path == "/") return {Topic::kStatusPage, {}, {}, {}, {}, {}};
  if (path == "/status.json") return {Topic::kStatusJson, {}, {}, {}, {}, {}};
  std::vector<std::string> segments;
  segments.reserve(6);
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const size_t end = std::min(path.find('/'), path.size());
    std::optional<std::string> segment = decode_segment(path.substr(0, end));
    if (!segment) return {};
    segments.push_back(std::move(*segment));
    path.remove_prefix(end);
  }
  if (segments.empty() || segments[0] != "v2") return {};
  if (segments.size() == 1) return {Topic::kServerMetadata, {}, {}, {}, {}, {}};
  const std::string& area = segments[1];
  const Segments rest = Segments(segments).subspan(2);
  Route route;
  if (area == "models") return model_route(rest);
  if (area == "repository") return repository_route(rest);
  if (area == "systemsharedmemory") return memory_route(rest, Topic::kSystemMemory);
  if (area == "cudasharedmemory") return memory_route(rest, Topic::kCudaMemory);
  if (area == "health" && rest.size() == 1)
    route.topic = rest[0] == "live"    ? Topic::kLive
                  : rest[0] == "ready" ? Topic::kReady
                                       : Topic::kUnknown;
  if (area == "trace" && rest.size() == 1 && rest[0] == "setting")
    route.topic = Topic::kTraceSetting;
  if (area == "logging" && rest.empty()) route.topic = Topic::kLogging;
  return route;
}

}  // namespace anymps::server::http
