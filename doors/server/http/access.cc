// SPDX-License-Identifier: Apache-2.0
#include "server/http/access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "server/core/access.h"

namespace anymps::server::http {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return lower;
}

// "name:port" without the port; "[::1]:80" without the brackets too.
std::string host_name(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return lower_case(host.substr(0, host.rfind(':')));
}

bool is_listed(const std::vector<std::string>& list, const std::string& word) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) {
    return entry == "*" || lower_case(entry) == word;
  });
}

// A page is not able to choose an address as its name, nor one without a dot: those are of this
// machine or of the local network.
bool is_local_name(const std::string& name) {
  unsigned char address[sizeof(in6_addr)];
  return name.find('.') == std::string::npos || name.ends_with(".localhost") ||
         inet_pton(AF_INET, name.c_str(), address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address) == 1;
}

std::optional<Reply> check_host(const Options& options, const std::string& address,
                                const Head& head) {
  const std::string* host = head.header("Host");
  if (!host) return std::nullopt;
  const std::string name = host_name(*host);
  if (is_local_name(name) || is_listed(options.http_allow_hosts, name)) return std::nullopt;
  if (options.http_allow_hosts.empty() && !is_loopback(address)) return std::nullopt;
  return error_reply(403, "this server is not called '" + name +
                              "': a web page may have pointed that name at it; "
                              "--http-allow-host " +
                              name + " allows it");
}

// "https://h:1" of an Origin is "h:1".
std::string authority(const std::string& origin) {
  const size_t at = origin.find("://");
  return at == std::string::npos ? "" : lower_case(origin.substr(at + 3));
}

bool is_own_origin(const Head& head, const std::string& origin) {
  const std::string* host = head.header("Host");
  return host && !host->empty() && authority(origin) == lower_case(*host);
}

std::optional<Reply> check_origin(const Options& options, const Head& head) {
  const auto refused = [](const std::string& who, const std::string& flag) {
    return error_reply(403, "requests of web pages of " + who +
                                " are refused; --http-allow-origin " + flag + " allows them");
  };
  if (const std::string* origin = head.header("Origin")) {
    if (is_own_origin(head, *origin) || is_listed(options.http_allow_origins, lower_case(*origin)))
      return std::nullopt;
    return refused("'" + *origin + "'", *origin);
  }
  const std::string* site = head.header("Sec-Fetch-Site");
  if (!site || *site == "same-origin" || *site == "none" ||
      is_listed(options.http_allow_origins, "*"))
    return std::nullopt;
  // Links on other pages may lead to the status page.
  const std::string* mode = head.header("Sec-Fetch-Mode");
  if (head.path == "/" && head.method == Method::kGet && mode && *mode == "navigate")
    return std::nullopt;
  return refused("other origins", "'*'");
}

// What a browser asks before it sends a request that a page could not send by itself.
std::optional<Reply> answer_preflight(const Head& head) {
  if (head.method != Method::kOptions || !head.header("Origin") ||
      !head.header("Access-Control-Request-Method"))
    return std::nullopt;
  Reply reply = text_reply(200, "", "");
  reply.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, HEAD");
  if (const std::string* headers = head.header("Access-Control-Request-Headers"))
    reply.headers.emplace_back("Access-Control-Allow-Headers", *headers);
  if (head.header("Access-Control-Request-Private-Network"))
    reply.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  reply.headers.emplace_back("Access-Control-Max-Age", "600");
  return reply;
}

// The headers of a request, as core/access.h asks for them.
auto headers_of(const Head& head) {
  return [&head](std::string_view name) -> std::optional<std::string_view> {
    const std::string* value = head.header(name);
    return value ? std::optional<std::string_view>(*value) : std::nullopt;
  };
}

std::optional<Reply> check_api_key(const Options& options, const Head& head) {
  if (shows_key(options.api_key, headers_of(head))) return std::nullopt;
  Reply reply = error_reply(401, "an API key is needed");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

std::optional<Reply> check_page(const Options& options, const std::string& address,
                                const Head& head) {
  if (auto reply = check_host(options, address, head)) return reply;
  if (auto reply = check_origin(options, head)) return reply;
  return answer_preflight(head);
}

Apis apis_of(Topic topic) {
  switch (topic) {
    case Topic::kLive:
    case Topic::kReady:
    case Topic::kModelReady:
      return kHealthApi;
    case Topic::kServerMetadata:
    case Topic::kModelMetadata:
      return kMetadataApi;
    case Topic::kModelConfig:
      return kModelConfigApi;
    case Topic::kStatistics:
      return kStatisticsApi;
    case Topic::kInfer:
    case Topic::kGenerate:
    case Topic::kGenerateStream:
      return kInferenceApi;
    case Topic::kTraceSetting:
      return kTraceApi;
    case Topic::kRepositoryIndex:
    case Topic::kLoad:
    case Topic::kUnload:
      return kModelRepositoryApi;
    case Topic::kSystemMemory:
    case Topic::kCudaMemory:
      return kSharedMemoryApi;
    case Topic::kLogging:
      return kLoggingApi;
    case Topic::kStatusJson:  // tells of all of these
      return kStatisticsApi | kModelRepositoryApi | kMetadataApi;
    case Topic::kStatusPage:
    case Topic::kUnknown:
      return kNoApi;
  }
  return kNoApi;
}

std::optional<Reply> check_caller(const Options& options, const Head& head) {
  if (options.api_key.empty() && options.http_restricted.empty()) return std::nullopt;
  const Topic topic = find_route(head.path).topic;
  // The page holds no figures: it asks for the key before it fetches them.
  if (topic != Topic::kLive && topic != Topic::kReady && topic != Topic::kStatusPage)
    if (auto reply = check_api_key(options, head)) return reply;
  const Restriction* restriction = unmet(options.http_restricted, apis_of(topic), headers_of(head));
  if (!restriction) return std::nullopt;
  return error_reply(403, "This API is restricted, expecting header '" + restriction->header + "'");
}

}  // namespace

std::optional<Reply> check_access(const Options& options, const Head& head) {
  std::optional<Reply> reply = check_page(options, options.http_address, head);
  if (!reply) reply = check_caller(options, head);
  if (reply) add_origin(options, head, *reply);
  return reply;
}

std::optional<Reply> check_metrics_access(const Options& options, const Head& head) {
  std::optional<Reply> reply = check_page(options, options.metrics_address, head);
  if (!reply) reply = check_api_key(options, head);
  if (reply) add_origin(options, head, *reply);
  return reply;
}

void add_origin(const Options& options, const Head& head, Reply& reply) {
  if (options.http_allow_origins.empty()) return;
  reply.headers.emplace_back("Vary", "Origin");
  const std::string* origin = head.header("Origin");
  if (!origin || !is_listed(options.http_allow_origins, lower_case(*origin))) return;
  reply.headers.emplace_back("Access-Control-Allow-Origin", *origin);
  reply.headers.emplace_back("Access-Control-Expose-Headers",
                             "Inference-Header-Content-Length, Content-Encoding");
}

}  // namespace anymps::server::http
