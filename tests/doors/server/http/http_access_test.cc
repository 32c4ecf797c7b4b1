// SPDX-License-Identifier: Apache-2.0
// Which requests over HTTP go on, by their heads alone.
#include "server/http/access.h"

#include <gtest/gtest.h>

namespace anymps::server::http {
namespace {

Head head_from(const std::string& line, const std::string& headers) {
  return parse_head(line + " HTTP/1.1\r\n" + headers + "\r\n")->first;
}

// The status of the refusal; 0: the request goes on.
int decide(const Options& options, const std::string& line, const std::string& headers) {
  const std::optional<Reply> reply = check_access(options, head_from(line, headers));
  return reply ? reply->status : 0;
}

std::string header_of(const Reply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers)
    if (key == name) return value;
  return "";
}

struct Case {
  std::string headers;
  int status;
};

constexpr char kLocal[] = "Host: localhost:8000\r\n";

TEST(HttpAccess, AnswersToLocalNamesOnly) {
  Options options;
  const Case cases[] = {{"Host: localhost:8000\r\n", 0},
                        {"Host: 127.0.0.1:8000\r\n", 0},
                        {"Host: [::1]:8000\r\n", 0},
                        {"Host: LOCALHOST\r\n", 0},
                        {"Host: app.localhost:8000\r\n", 0},
                        {"Host: machine:8000\r\n", 0},
                        {"Host: rebound.example:8000\r\n", 403},
                        {"Host: rebound.example\r\n", 403},
                        {"Host: localhost.example\r\n", 403},
                        {"Host: 127.0.0.1.example:8000\r\n", 403},
                        {"Host: example.\r\n", 403}};
  for (const Case& each : cases) {
    EXPECT_EQ(decide(options, "GET /v2", each.headers), each.status) << each.headers;
    const std::optional<Reply> metrics =
        check_metrics_access(options, head_from("GET /metrics", each.headers));
    EXPECT_EQ(metrics ? metrics->status : 0, each.status) << each.headers;
  }
  options.http_allow_hosts = {"Rebound.example"};
  EXPECT_EQ(decide(options, "GET /v2", "Host: rebound.example:8000\r\n"), 0);
  EXPECT_EQ(decide(options, "GET /v2", "Host: other.example:8000\r\n"), 403);
  options.http_allow_hosts = {};
  options.http_address = "0.0.0.0";  // names of a network are as they are
  EXPECT_EQ(decide(options, "GET /v2", "Host: anymps.default.svc:8000\r\n"), 0);
  options.http_allow_hosts = {"anymps.default.svc"};
  EXPECT_EQ(decide(options, "GET /v2", "Host: rebound.example:8000\r\n"), 403);
}

TEST(HttpAccess, RefusesPagesOfOtherOrigins) {
  const Options options;
  const Case cases[] = {{"", 0},  // a client that is no browser
                        {"Origin: http://localhost:8000\r\n", 0},
                        {"Origin: http://localhost:8000\r\nSec-Fetch-Site: same-origin\r\n", 0},
                        {"Origin: http://localhost:3000\r\n", 403},
                        {"Origin: http://localhost\r\n", 403},
                        {"Origin: https://evil.example\r\n", 403},
                        {"Origin: null\r\n", 403},
                        {"Origin: \r\n", 403},
                        {"Origin: http://localhost:8000.evil.example\r\n", 403},
                        {"Sec-Fetch-Site: same-origin\r\n", 0},
                        {"Sec-Fetch-Site: none\r\n", 0},
                        {"Sec-Fetch-Site: cross-site\r\n", 403},
                        {"Sec-Fetch-Site: same-site\r\n", 403},
                        {"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 403}};
  for (const Case& each : cases)
    for (const char* line :
         {"GET /v2/health/live", "POST /v2/models/m/infer", "POST /v2/repository/models/m/load"})
      EXPECT_EQ(decide(options, line, kLocal + each.headers), each.status) << line << "\n"
                                                                           << each.headers;
  // A link may lead to the status page, and nothing else of another page.
  EXPECT_EQ(
      decide(options, "GET /",
             std::string(kLocal) + "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"),
      0);
  EXPECT_EQ(
      decide(options, "GET /",
             std::string(kLocal) + "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"),
      403);
}

TEST(HttpAccess, AllowedOriginsSeeTheAnswers) {
  Options options;
  options.http_allow_origins = {"https://App.example"};
  options.api_key = "secret";
  const std::string origin = std::string(kLocal) + "Origin: https://app.example\r\n";
  const std::string asks =
      "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
  // The question before a request has no key.
  const std::optional<Reply> preflight =
      check_access(options, head_from("OPTIONS /v2/models/m/infer", origin + asks));
  ASSERT_TRUE(preflight);
  EXPECT_EQ(preflight->status, 200);
  EXPECT_EQ(header_of(*preflight, "Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(header_of(*preflight, "Access-Control-Allow-Headers"), "authorization");
  EXPECT_NE(header_of(*preflight, "Access-Control-Allow-Methods").find("POST"), std::string::npos);
  EXPECT_EQ(header_of(*preflight, "Vary"), "Origin");
  // The refusal for want of a key is one that the page can read.
  const std::optional<Reply> keyless = check_access(options, head_from("GET /v2", origin));
  ASSERT_TRUE(keyless);
  EXPECT_EQ(keyless->status, 401);
  EXPECT_EQ(header_of(*keyless, "Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(decide(options, "GET /v2", origin + "X-API-Key: secret\r\n"), 0);
  Reply answer = text_reply(200, "", "");
  add_origin(options, head_from("GET /v2", origin), answer);
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Origin"), "https://app.example");
  const std::string other = std::string(kLocal) + "Origin: https://other.example\r\n";
  const std::optional<Reply> refused =
      check_access(options, head_from("OPTIONS /v2/models/m/infer", other + asks));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(header_of(*refused, "Access-Control-Allow-Origin"), "");
  options.http_allow_origins = {"*"};
  EXPECT_EQ(decide(options, "GET /v2", other + "X-API-Key: secret\r\n"), 0);
}

TEST(HttpAccess, RestrictedApisNeedTheirHeader) {
  const std::pair<const char*, Apis> lines[] = {
      {"GET /v2/health/live", kHealthApi},
      {"GET /v2/health/ready", kHealthApi},
      {"GET /v2/models/m/ready", kHealthApi},
      {"GET /v2", kMetadataApi},
      {"GET /v2/models/m", kMetadataApi},
      {"GET /v2/models/m/versions/1", kMetadataApi},
      {"POST /v2/models/m/infer", kInferenceApi},
      {"POST /v2/models/m/versions/1/infer", kInferenceApi},
      {"POST /v2/models/m/generate", kInferenceApi},
      {"POST /v2/models/m/generate_stream", kInferenceApi},
      {"GET /v2/models/m/config", kModelConfigApi},
      {"GET /v2/models/m/stats", kStatisticsApi},
      {"GET /v2/models/stats", kStatisticsApi},
      {"POST /v2/repository/index", kModelRepositoryApi},
      {"POST /v2/repository/models/m/load", kModelRepositoryApi},
      {"POST /v2/repository/r/models/m/load", kModelRepositoryApi},
      {"POST /v2/repository/models/m/unload", kModelRepositoryApi},
      {"POST /v2/systemsharedmemory/region/r/register", kSharedMemoryApi},
      {"GET /v2/cudasharedmemory/status", kSharedMemoryApi},
      {"POST /v2/trace/setting", kTraceApi},
      {"GET /v2/models/m/trace/setting", kTraceApi},
      {"POST /v2/logging", kLoggingApi},
      {"POST /%76%32/logging", kLoggingApi},
      {"GET /status.json", kStatisticsApi},
      {"GET /status.json", kModelRepositoryApi},
      {"GET /", kNoApi}};
  for (const auto& [line, api] : lines)
    for (Apis one = 1; one <= kLoggingApi; one <<= 1) {
      Options options;
      options.http_restricted = {{one, "k", "v"}};
      const bool closed = one == api;
      if (!closed && std::string_view(line) == "GET /status.json") continue;  // of several
      EXPECT_EQ(decide(options, line, kLocal), closed ? 403 : 0) << line;
      EXPECT_EQ(decide(options, line, std::string(kLocal) + "K: v\r\n"), 0) << line;
      EXPECT_EQ(decide(options, line, std::string(kLocal) + "K: w\r\n"), closed ? 403 : 0) << line;
      EXPECT_EQ(decide(options, line, std::string(kLocal) + "K: vv\r\n"), closed ? 403 : 0) << line;
    }
}

}  // namespace
}  // namespace anymps::server::http
