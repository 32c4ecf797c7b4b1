// SPDX-License-Identifier: Apache-2.0
// The HTTP side over a real server with tiny models: routes, inference, keys, limits, the end.
#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "http/http_client.h"
#include "repository/model_folder.h"
#include "server/core/server.h"

namespace anymps::server {
namespace {

using nlohmann::json;
using test::Answer;
using test::Client;

const std::string kInput = R"({"name":"x","datatype":"FP32","shape":[1,4],"data":[[1,2,3,4]]})";
const std::string kBody = "{\"inputs\":[" + kInput + "]}";

class Running {
 public:
  explicit Running(void (*change)(Options&) = [](Options&) {}) {
    folder_.add("one", 1);
    folder_.add("two", 2, 3);
    Options options;
    options.model_repositories = {folder_.path().string()};
    options.model_control = ModelControl::kExplicit;
    options.load_models = {"one"};
    options.http_port = options.metrics_port = 0;
    options.log_info = options.log_warning = options.log_error = false;
    change(options);
    server.emplace(options);
    server->start();
    http.emplace(*server);
  }
  ~Running() {
    http->stop();
    server->stop();
    http.reset();
  }
  Client client() const { return Client(http->port()); }

  std::optional<Server> server;
  std::optional<HttpServer> http;

 private:
  ModelFolder folder_;
};

TEST(HttpServer, TellsAboutItselfAndItsModels) {
  Running running;
  Client client(running.http->port());
  EXPECT_EQ(client.get("/v2/health/live").status, 200);
  EXPECT_EQ(client.get("/v2/health/ready").status, 200);
  EXPECT_EQ(client.get("/v2/models/one/ready").status, 200);
  EXPECT_EQ(client.get("/v2/models/two/ready").status, 400);
  const json server = json::parse(client.get("/v2").body);
  EXPECT_EQ(server["name"], "triton");
  const json metadata = json::parse(client.get("/v2/models/one/versions/1").body);
  EXPECT_EQ(metadata["inputs"][0], json::parse(R"({"name":"x","datatype":"FP32","shape":[-1,4]})"));
  EXPECT_EQ(json::parse(client.get("/v2/models/one/config").body)["backend"], "metal_mps");
  const Answer unknown = client.get("/v2/models/none");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body, R"({"error":"Request for unknown model: 'none' is not found"})");
  EXPECT_EQ(client.get("/nowhere").status, 404);
  EXPECT_EQ(client.get("/v2/models/one/infer").status, 405);
  EXPECT_EQ(client.post("/v2", "").status, 405);
}

TEST(HttpServer, Infers) {
  Running running;
  Client client(running.http->port());
  EXPECT_EQ(client.post("/v2/models/one/infer", kBody).body,
            R"({"model_name":"one","model_version":"1","outputs":[{"name":"y","datatype":"FP32",)"
            R"("shape":[1,4],"data":[2.0,3.0,4.0,5.0]}]})");
  const float values[] = {5, 6, 7, 8};
  const std::string raw(reinterpret_cast<const char*>(values), sizeof values);
  const std::string head =
      R"({"parameters":{"binary_data_output":true},"inputs":[{"name":"x","datatype":"FP32",)"
      R"("shape":[1,4],"parameters":{"binary_data_size":16}}]})";
  const Answer binary =
      client.post("/v2/models/one/infer", head + raw,
                  "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n");
  ASSERT_EQ(binary.status, 200) << binary.body;
  EXPECT_TRUE(binary.has("Content-Type: application/octet-stream"));
  float answer[4];
  std::memcpy(answer, binary.body.data() + binary.body.size() - sizeof answer, sizeof answer);
  EXPECT_EQ(answer[0], 6);
  EXPECT_EQ(answer[3], 9);
  const Answer bare =
      client.post("/v2/models/one/infer", raw, "Inference-Header-Content-Length: 0\r\n");
  EXPECT_EQ(bare.body, binary.body);
  EXPECT_EQ(client.post("/v2/models/none/infer", kBody).status, 404);
  EXPECT_EQ(client.post("/v2/models/one/versions/9/infer", kBody).status, 404);
  EXPECT_EQ(client.post("/v2/models/one/infer", "{").status, 500);
  EXPECT_EQ(client.post("/v2/models/one/infer", kBody, "Content-Encoding: br\r\n").status, 501);
  const Answer packed = client.post("/v2/models/one/infer", kBody, "Accept-Encoding: gzip\r\n");
  EXPECT_TRUE(packed.has("Content-Encoding: gzip"));
  EXPECT_EQ(packed.body.substr(0, 2), "\x1f\x8b");
}

TEST(HttpServer, Generates) {
  Running running;
  Client client(running.http->port());
  const std::string answer = R"({"model_name":"one","model_version":"1","y":[2.0,3.0,4.0,5.0]})";
  EXPECT_EQ(client.post("/v2/models/one/generate", R"({"x":[1,2,3,4]})").body, answer);
  const Answer stream = client.post("/v2/models/one/generate_stream", R"({"x":[1,2,3,4]})");
  EXPECT_TRUE(stream.has("text/event-stream"));
  EXPECT_EQ(stream.body, "data: " + answer + "\n\n");
  EXPECT_EQ(client.post("/v2/models/one/generate", R"({"x":[1,2,3]})").status, 400);
  const Answer refused = client.post("/v2/models/one/generate_stream", "{}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.has("Content-Type: application/json"));
}

TEST(HttpServer, LoadsAndUnloads) {
  Running running;
  Client client(running.http->port());
  EXPECT_EQ(client.post("/v2/repository/models/two/load", "").status, 200);
  EXPECT_EQ(client.get("/v2/models/two/ready").status, 200);
  EXPECT_EQ(client.post("/v2/models/two/infer", kBody).status, 200);
  const json index = json::parse(client.post("/v2/repository/index", "").body);
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(index[0], json::parse(R"({"name":"one","version":"1","state":"READY"})"));
  EXPECT_EQ(client.post("/v2/repository/models/two/unload", "{}").status, 200);
  EXPECT_EQ(client.post("/v2/repository/models/none/load", "").status, 500);
  EXPECT_EQ(client.post("/v2/repository/r/models/two/load", "").status, 501);
  EXPECT_EQ(client.post("/v2/repository/models/two/load", R"({"parameters":{"x":"y"}})").status,
            500);
}

TEST(HttpServer, SettingsAndSharedMemory) {
  Running running;
  Client client(running.http->port());
  EXPECT_EQ(json::parse(client.get("/v2/logging").body)["log_verbose_level"], 0);
  EXPECT_EQ(json::parse(
                client.post("/v2/logging", R"({"log_verbose_level":2})").body)["log_verbose_level"],
            2);
  client.post("/v2/logging", R"({"log_verbose_level":0})");
  EXPECT_EQ(client.post("/v2/logging", R"({"log_info":5})").status, 500);
  EXPECT_EQ(json::parse(client.get("/v2/trace/setting").body)["trace_level"],
            json::parse(R"(["OFF"])"));
  EXPECT_EQ(client.post("/v2/trace/setting", R"({"trace_rate":"x"})").body,
            R"({"error":"Unable to parse 'trace_rate', got: x"})");
  EXPECT_EQ(client.get("/v2/models/none/trace/setting").status, 400);
  EXPECT_EQ(client.get("/v2/systemsharedmemory/status").body, "[]");
  EXPECT_EQ(client.get("/v2/systemsharedmemory/region/r/status").status, 404);
  EXPECT_EQ(client.post("/v2/systemsharedmemory/region/r/register", "{}").status, 400);
  EXPECT_EQ(client
                .post("/v2/systemsharedmemory/region/r/register",
                      R"({"key":"/k","offset":0,"byte_size":64})")
                .status,
            501);
  EXPECT_EQ(client.post("/v2/systemsharedmemory/unregister", "").status, 200);
  EXPECT_EQ(client.get("/v2/cudasharedmemory/status").body, "[]");
  EXPECT_EQ(client.post("/v2/cudasharedmemory/region/r/register", "{}").status, 400);
}

TEST(HttpServer, StatisticsMetricsAndStatusCount) {
  Running running;
  Client client(running.http->port());
  for (int i = 0; i < 3; ++i) client.post("/v2/models/one/infer", kBody);
  const json stats = json::parse(client.get("/v2/models/one/stats").body);
  EXPECT_EQ(stats["model_stats"][0]["inference_count"], 3);
  const json status = json::parse(client.get("/status.json").body);
  EXPECT_TRUE(status["server"]["ready"]);
  EXPECT_EQ(status["models"][0]["statistics"]["inference_count"], 3);
  EXPECT_GT(status["models"][0]["latency_ms"][1], 0);
  EXPECT_GT(status["memory"]["resident"], 0);
  const Answer page = client.get("/");
  EXPECT_TRUE(page.has("text/html"));
  EXPECT_NE(page.body.find("<title>AnyMPS server</title>"), std::string::npos);
  Client metrics(running.http->metrics_port());
  EXPECT_NE(metrics.get("/metrics").body.find("nv_inference_count{model=\"one\",version=\"1\"} 3"),
            std::string::npos);
  EXPECT_EQ(metrics.get("/other").status, 404);
  EXPECT_EQ(metrics.post("/metrics", "").status, 405);
}

TEST(HttpServer, AsksForTheKey) {
  Running running([](Options& options) { options.api_key = "secret"; });
  Client client(running.http->port());
  EXPECT_EQ(client.get("/v2/health/ready").status, 200);
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(client.get("/v2").status, 401);
  EXPECT_EQ(client.get("/status.json").status, 401);
  EXPECT_EQ(client.get("/v2", "X-API-Key: secre\r\n").status, 401);
  EXPECT_EQ(client.get("/v2", "X-API-Key: secretx\r\n").status, 401);
  EXPECT_EQ(client.get("/v2", "X-API-Key: secret\r\n").status, 200);
  EXPECT_EQ(client.get("/v2", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(Client(running.http->metrics_port()).get("/metrics").status, 401);
}

TEST(HttpServer, LimitsTheSizeOfRequests) {
  Running running([](Options& options) { options.max_request_bytes = 200; });
  EXPECT_EQ(running.client().post("/v2/models/one/infer", kBody).status, 200);
  EXPECT_EQ(running.client().post("/v2/models/one/infer", kBody + std::string(200, ' ')).status,
            413);
}

TEST(HttpServer, AnswersWhatIsUnderWayWhenItEnds) {
  for (int round = 0; round < 3; ++round) {
    auto running = std::make_unique<Running>();
    const uint16_t port = running->http->port();
    constexpr int kClients = 4;
    std::atomic<int> connected{0}, answered{0}, wrong{0}, lost{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i)
      clients.emplace_back([&] {
        Client client(port);
        ++connected;
        while (true) {
          const Answer answer = client.post("/v2/models/one/infer", kBody);
          if (answer.status == 0) {
            ++lost;
            return;
          }
          if (answer.status != 200 && answer.status != 503) ++wrong;
          if (answer.status == 200 && answer.body.find("[2.0,3.0,4.0,5.0]") == std::string::npos)
            ++wrong;
          ++answered;
          if (answer.has("Connection: close")) return;
        }
      });
    while (connected < kClients || answered == 0) std::this_thread::yield();
    running.reset();
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(lost, 0);
    EXPECT_GT(answered, 0);
  }
}

}  // namespace
}  // namespace anymps::server
