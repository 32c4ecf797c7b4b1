// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/grpc_server.h"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <fstream>
#include <iterator>
#include <thread>

#include "server/grpc/health.h"
#include "server/grpc/service.h"

namespace server {
namespace {

// Infer calls that wait for clients on each queue: so many can arrive at a time without waiting.
constexpr int kAwaited = 32;
// Threads for the methods that do not infer, some of which take long: loading a model.
constexpr int kMostThreads = 64;

std::string read_file(const char* flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && text.empty())
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: the file '{}' cannot be read", flag, path));
  return text;
}

std::shared_ptr<grpc::ServerCredentials> credentials(const TlsOptions& tls) {
  if (!tls.enabled) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      tls.mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back(
      {read_file("--grpc-server-key", tls.key), read_file("--grpc-server-cert", tls.certificate)});
  if (!tls.root.empty()) options.pem_root_certs = read_file("--grpc-root-cert", tls.root);
  return grpc::SslServerCredentials(options);
}

std::string endpoint(const Options& options) {
  const bool v6 = options.grpc_address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", options.grpc_address, v6 ? "]" : "",
                     options.grpc_port);
}

grpc_compression_level compression(const std::string& name) {
  return name == "low"      ? GRPC_COMPRESS_LEVEL_LOW
         : name == "medium" ? GRPC_COMPRESS_LEVEL_MED
         : name == "high"   ? GRPC_COMPRESS_LEVEL_HIGH
                            : GRPC_COMPRESS_LEVEL_NONE;
}

void set_connections(grpc::ServerBuilder& builder, const GrpcConnectionOptions& c) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, c.keepalive_time);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, c.keepalive_timeout);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, c.keepalive_without_calls);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, c.pings_without_data);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             c.ping_interval);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, c.ping_strikes);
  if (c.max_age > 0) builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, c.max_age);
  if (c.max_age_grace > 0)
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, c.max_age_grace);
}

}  // namespace

struct GrpcServer::State {
  explicit State(Server& server)
      : server(server), service(server), health(server), calls(server, service) {}

  Server& server;
  Service service;
  HealthService health;
  Calls calls;
  int port = 0;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  std::unique_ptr<grpc::Server> grpc;
  std::vector<std::thread> threads;
  bool stopped = false;

  void serve(grpc::ServerCompletionQueue* queue) {
    for (int i = 0; i < kAwaited; ++i) await_infer(calls, queue);
    await_stream(calls, queue);
    await_watch(calls, health, queue);
    threads.emplace_back([queue] {
      void* event = nullptr;
      bool ok = false;
      while (queue->Next(&event, &ok)) (*static_cast<Event*>(event))(ok);
    });
  }
};

GrpcServer::GrpcServer(Server& server) : state_(std::make_unique<State>(server)) {
  // Builds of Abseil that look for deadlocks take a lock of the whole process for each of gRPC's.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const Options& options = server.options();
  State& s = *state_;
  s.calls.compression = compression(options.grpc_compression);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(endpoint(options), credentials(options.grpc_tls), &s.port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, options.reuse_grpc_port ? 1 : 0);
  // See infer_message.cc.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  set_connections(builder, options.grpc_connections);
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<uint64_t>(options.max_request_bytes, INT_MAX)));
  builder.SetMaxSendMessageSize(-1);
  builder.SetResourceQuota(grpc::ResourceQuota("anymps").SetMaxThreads(kMostThreads));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.RegisterService(&s.service);
  builder.RegisterService(&s.health);
  const unsigned queues = std::clamp(std::thread::hardware_concurrency() / 2, 1U, 4U);
  for (unsigned i = 0; i < queues; ++i) s.queues.push_back(builder.AddCompletionQueue());
  s.grpc = builder.BuildAndStart();
  if (!s.grpc || s.port == 0) {
    if (s.grpc) s.grpc->Shutdown();
    for (const auto& queue : s.queues) queue->Shutdown();
    throw Error(Code::kUnavailable,
                fmt::format("gRPC cannot listen at {}: {}", endpoint(options),
                            options.grpc_tls.enabled
                                ? "the port is taken, or the certificate and the key are not PEM "
                                  "or do not belong together"
                                : "the address is not of this machine or the port is taken; "
                                  "--grpc-port chooses another, 0 any free one"));
  }
  for (const auto& queue : s.queues) s.serve(queue.get());
}

GrpcServer::~GrpcServer() { stop(); }

uint16_t GrpcServer::port() const { return static_cast<uint16_t>(state_->port); }

void GrpcServer::stop() {
  State& s = *state_;
  if (s.stopped || !s.grpc) return;
  s.stopped = true;
  s.calls.drain();
  s.grpc->Shutdown(std::chrono::system_clock::now() +
                   std::chrono::seconds(s.server.options().exit_timeout_seconds));
  s.calls.wait_for_none();
  for (const auto& queue : s.queues) queue->Shutdown();
  for (std::thread& thread : s.threads) thread.join();
}

}  // namespace server
