// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/grpc_server.h"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/resource_quota.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>

#include "server/grpc/credentials.h"
#include "server/grpc/health.h"
#include "server/grpc/service.h"
#include "server/http/transport/listener.h"
#include "server/http/transport/loop.h"
#include "server/memory/held_bytes.h"

namespace anymps::server {
namespace {

// Infer calls that wait for clients on each queue: this many can arrive at a time without waiting.
constexpr int kAwaited = 32;
// Threads for the methods that do not infer, some of which take long: loading a model.
constexpr int kMostThreads = 64;
// For TLS, and for the first frame of HTTP/2.
constexpr int kHandshakeMs = 30'000;
constexpr std::chrono::milliseconds kLastMessages{200};
// For connections to close when no call is left; gRPC waits for silent ones much longer.
constexpr std::chrono::milliseconds kGoodbye{500};

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
      : server(server),
        door(server.options()),
        service(server),
        health(server),
        calls(server, service) {}

  Server& server;
  Door door;
  Service service;
  HealthService health;
  Calls calls;
  uint16_t port = 0;
  // Connections are accepted here, not by gRPC: its listener ends for good when there is no file
  // descriptor for a connection.
  http::Loop listening;
  http::Gate gate;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  std::unique_ptr<grpc::Server> grpc;
  std::vector<std::thread> threads;
  bool stopped = false;

  void listen(int fd) {
    listening.listen(fd, [this](int connection) {
      if (gate.enter(connection).first != http::Gate::Verdict::kWelcome) {
        ::close(connection);
        return;
      }
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.fd = connection;
      acceptor->HandleNewConnection(&parameters);
    });
    listening.start();
  }

  // Whether there are calls beside those that wait for their clients.
  bool is_busy() const {
    return calls.alive() > queues.size() * (kAwaited + 2) || service.under_way() > 0;
  }

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
  const int fd = http::listen_on(options.grpc_address, options.grpc_port, options.reuse_grpc_port);
  s.port = http::port_of(fd);
  grpc::ServerBuilder builder;
  s.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      s.door.credentials());
  // See infer_message.cc.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  set_connections(builder, options.grpc_connections);
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<uint64_t>(options.max_request_bytes, INT_MAX)));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.grpc_max_streams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(options.http_idle_seconds * 1000));
  builder.SetResourceQuota(grpc::ResourceQuota("anymps")
                               .SetMaxThreads(kMostThreads)
                               .Resize(server.held_bytes().limit()));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.RegisterService(&s.service);
  builder.RegisterService(&s.health);
  const unsigned queues = std::clamp(std::thread::hardware_concurrency() / 2, 1U, 4U);
  for (unsigned i = 0; i < queues; ++i) s.queues.push_back(builder.AddCompletionQueue());
  s.grpc = builder.BuildAndStart();
  if (!s.grpc) {
    ::close(fd);
    for (const auto& queue : s.queues) queue->Shutdown();
    throw Error(
        Code::kUnavailable,
        fmt::format("gRPC cannot start: {}",
                    options.grpc_tls.enabled
                        ? "the certificate and the key are not PEM or do not belong together"
                        : "see the log"));
  }
  for (const auto& queue : s.queues) s.serve(queue.get());
  s.listen(fd);
}

GrpcServer::~GrpcServer() { stop(); }

uint16_t GrpcServer::port() const { return state_->port; }

void GrpcServer::stop() {
  State& s = *state_;
  if (s.stopped || !s.grpc) return;
  s.stopped = true;
  s.listening.finish(0);
  s.door.close();
  s.calls.drain();
  // For the messages of calls that are let in already: gRPC drops those that come later.
  std::this_thread::sleep_for(kLastMessages);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::seconds(s.server.options().exit_timeout_seconds);
  while (s.is_busy() && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  s.grpc->Shutdown(std::chrono::system_clock::now() + kGoodbye);
  s.calls.wait_for_none();
  for (const auto& queue : s.queues) queue->Shutdown();
  for (std::thread& thread : s.threads) thread.join();
}

}  // namespace anymps::server
