// SPDX-License-Identifier: Apache-2.0
// The server without its protocols: what it tells about models, and how it stops.
#include "server/core/server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "repository/model_folder.h"
#include "server/core/message_json.h"
#include "server/memory/buffer_pool.h"
#include "server/memory/shared_memory.h"

namespace anymps::server {
namespace {

Options quiet(const ModelFolder& folder, ModelControl control = ModelControl::kNone) {
  Options options;
  options.model_repositories = {folder.path().string()};
  options.model_control = control;
  options.log_info = options.log_warning = options.log_error = false;
  return options;
}

std::future<Response> send_to(Server& server, RequestPtr request) {
  auto promise = std::make_shared<std::promise<Response>>();
  request->respond = [promise](Response&& response) { promise->set_value(std::move(response)); };
  server.infer(std::move(request));
  return promise->get_future();
}

TEST(Server, TellsAboutModels) {
  ModelFolder folder;
  folder.add("m", 1, 2);
  folder.config("m", "max_batch_size: 4 dynamic_batching {} " + std::string(kFourFloats));
  folder.add("flat", 1, 1, false);
  folder.config("flat", kFourFloats);
  Server server(quiet(folder));
  EXPECT_FALSE(server.ready());
  EXPECT_EQ(error_of(send_to(server, make_request("m", {1, 2, 3, 4})).get()),
            "Server is stopping, scheduler for model has stopped accepting new inference requests");
  server.start();
  EXPECT_TRUE(server.live());
  EXPECT_TRUE(server.ready());
  EXPECT_EQ(server.metadata().name(), "triton");
  EXPECT_EQ(to_json(server.model_metadata("m", ""), Defaults::kPrint).dump(),
            R"({"name":"m","versions":["2"],"platform":"metal_mps",)"
            R"("inputs":[{"name":"x","datatype":"FP32","shape":[-1,4]}],)"
            R"("outputs":[{"name":"y","datatype":"FP32","shape":[-1,4]}]})");
  EXPECT_EQ(server.model_metadata("flat", "1").inputs(0).shape_size(), 1);
  EXPECT_EQ(server.model_config("m", "2").max_batch_size(), 4);
  EXPECT_TRUE(server.model_ready("m", ""));
  EXPECT_FALSE(server.model_ready("m", "1"));
  EXPECT_EQ(
      floats_of(send_to(server, make_request("m", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 4})).get())[7], 9);
  const inference::ModelStatisticsResponse statistics = server.statistics("m", "");
  ASSERT_EQ(statistics.model_stats_size(), 1);
  EXPECT_EQ(statistics.model_stats(0).name(), "m");
  EXPECT_EQ(statistics.model_stats(0).version(), "2");
  EXPECT_EQ(statistics.model_stats(0).inference_count(), 2u);
  EXPECT_EQ(statistics.model_stats(0).execution_count(), 1u);
  EXPECT_EQ(server.statistics("", "").model_stats_size(), 2);
  EXPECT_EQ(server.figures().size(), 2u);
  const std::pair<std::function<void()>, std::string> refused[] = {
      {[&] { server.model_metadata("none", ""); },
       "Request for unknown model: 'none' is not found"},
      {[&] { server.model_config("m", "9"); },
       "Request for unknown model: 'm' version 9 is not found"},
      {[&] { server.statistics("none", ""); }, "requested model 'none' is not available"},
      {[&] { server.statistics("m", "9"); },
       "requested model version is not available for model 'm'"},
      {[&] { server.model_ready("m", "x"); },
       "failed to get model version from specified version string 'x' (details: stol), version "
       "should be an integral value > 0"},
      {[&] { server.model_metadata("m", "-1"); },
       "invalid model version specified '-1' , version should be an integral value > 0"},
  };
  for (const auto& [call, message] : refused) EXPECT_EQ(refusal(call), message);
  EXPECT_TRUE(server.stop());
}

// The client cuts its shared memory between sending a request and the run.
TEST(Server, OutlivesMemoryThatWasCut) {
  ModelFolder folder;
  folder.add("m", 1);
  folder.config("m", "max_batch_size: 4 " + std::string(kFourFloats));
  Options options = quiet(folder);
  options.allow_client_shm = true;
  Server server(options);
  server.start();
  const std::string key = "/anymps_cut_" + std::to_string(getpid());
  const int file = shm_open(key.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file, 8192), 0);
  server.shared_memory().add("r", key, 0, 8192);
  const Buffer memory = server.shared_memory().buffer("r", 4096, 4 * sizeof(float));
  const auto with_input = [&] {
    RequestPtr request = make_request("m", {1, 2, 3, 4});
    request->inputs[0].buffers = {memory};
    return send_to(server, std::move(request)).get();
  };
  const auto with_output = [&] {
    RequestPtr request = make_request("m", {1, 2, 3, 4});
    request->outputs = {{.name = "y", .target = memory}};
    return send_to(server, std::move(request)).get();
  };
  EXPECT_EQ(floats_of(with_input())[0], 1);
  EXPECT_EQ(floats_of(with_output())[0], 2);
  ASSERT_EQ(ftruncate(file, 0), 0);
  const std::string expected =
      "[request id: <id_unknown>] a shared memory region became smaller while the request used it";
  EXPECT_EQ(error_of(with_output()), expected);
  EXPECT_EQ(error_of(with_input()), expected);
  EXPECT_EQ(floats_of(send_to(server, make_request("m", {1, 2, 3, 4})).get())[3], 5);
  EXPECT_EQ(server.statistics("m", "").model_stats(0).inference_stats().fail().count(), 2u);
  close(file);
  shm_unlink(key.c_str());
}

TEST(Server, AnswersWhatItAcceptedBeforeItStops) {
  ModelFolder folder;
  folder.add("m", 1);
  folder.config("m", "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 200 }");
  Server server(quiet(folder));
  server.start();
  std::atomic<int> sent{0}, answered{0}, right{0}, refused{0};
  std::atomic<bool> running{true};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i)
    clients.emplace_back([&] {
      while (running) {
        RequestPtr request = make_request("m", {1, 2, 3, 4});
        request->respond = [&](Response&& response) {
          if (response.error)
            ++refused;
          else if (floats_of(response)[3] == 5)
            ++right;
          ++answered;
        };
        ++sent;
        server.infer(std::move(request));
        if (sent % 64 == 0) std::this_thread::yield();
        while (sent - answered > 256) std::this_thread::yield();
      }
    });
  while (right < 100) std::this_thread::yield();
  EXPECT_TRUE(server.stop());
  running = false;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, sent);
  EXPECT_EQ(right + refused, sent);
  EXPECT_FALSE(server.ready());
}

TEST(Server, ClientsRegisterSharedMemoryOnlyIfTheyMay) {
  ModelFolder folder;
  folder.add("m", 1);
  const auto extensions = [](const Server& server) {
    const inference::ServerMetadataResponse metadata = server.metadata();
    return std::set<std::string>(metadata.extensions().begin(), metadata.extensions().end());
  };
  Options options = quiet(folder);
  Server closed(options);
  Code code{};
  for (const std::function<void()>& call :
       {std::function<void()>([&] { closed.shared_memory().add("r", "/k", 0, 64); }),
        std::function<void()>([&] { closed.shared_memory().buffer("r", 0, 64); })}) {
    EXPECT_NE(refusal(call, &code).find("--allow-client-shm"), std::string::npos);
    EXPECT_EQ(code, Code::kUnsupported);
  }
  EXPECT_FALSE(extensions(closed).contains("system_shared_memory"));
  options.allow_client_shm = true;
  EXPECT_TRUE(extensions(Server(options)).contains("system_shared_memory"));
}

TEST(BufferPool, GivesBackWhatLiesUnused) {
  trim_buffers(std::chrono::nanoseconds(0));
  EXPECT_EQ(unused_buffer_bytes(), 0u);
  allocate_buffer(1 << 20);
  EXPECT_EQ(unused_buffer_bytes(), size_t{1} << 20);
  trim_buffers(std::chrono::hours(1));
  EXPECT_EQ(unused_buffer_bytes(), size_t{1} << 20);
  const Buffer used = allocate_buffer(1 << 20);  // the same block
  EXPECT_EQ(unused_buffer_bytes(), 0u);
  allocate_buffer(1 << 21);
  trim_buffers(std::chrono::nanoseconds(0));
  EXPECT_EQ(unused_buffer_bytes(), 0u);
}

}  // namespace
}  // namespace anymps::server
