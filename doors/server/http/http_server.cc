// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_server.h"

#include <chrono>

#include "server/core/server.h"
#include "server/http/access.h"
#include "server/http/control.h"
#include "server/http/inference.h"
#include "server/http/transport/listener.h"
#include "server/http/transport/loop.h"
#include "server/http/transport/workers.h"
#include "server/observation/logger.h"
#include "server/observation/metrics.h"

namespace anymps::server {
namespace {

using namespace http;

constexpr unsigned kWorkers = 2;
constexpr unsigned kFlushMs = 3000;  // at the end: for replies that are made but not sent
constexpr size_t kMetricsConnections = 64;

// What goes to clients that there is no file descriptor for.
std::string excuse() {
  Reply reply = error_reply(503, kFull);
  reply.headers.emplace_back("Retry-After", "1");
  const Buffer& body = reply.body.front();
  return head_of(reply, false).append(reinterpret_cast<const char*>(body.data), body.bytes);
}

// Runs `make`; what it throws becomes the reply.
template <class Make>
std::optional<Reply> guarded(Make&& make) try {
  return make();
} catch (const Error& error) {
  return error_reply(error);
} catch (const std::bad_alloc&) {
  return error_reply(503, "no memory for the request");
} catch (const std::exception& error) {
  return error_reply(500, error.what());
}

}  // namespace

struct HttpServer::State {
  explicit State(Server& core) : server(core), workers(kWorkers) {}

  std::optional<Reply> handle(const ExchangePtr& exchange) {
    const Head& head = exchange->head;
    if (server.logger().is_verbose(1)) server.logger().verbose(1, "HTTP request: " + head.path);
    const Route route = find_route(head.path);
    const bool page = route.topic == Topic::kStatusPage || route.topic == Topic::kStatusJson;
    if (route.topic == Topic::kUnknown || (page && !server.options().status_page))
      return error_reply(404, "Not Found");
    if (!allows(route, head.method)) return error_reply(405, "Method Not Allowed");
    return guarded([&]() -> std::optional<Reply> {
      switch (route.topic) {
        case Topic::kInfer:
          start_infer(server, exchange, route);
          return std::nullopt;
        case Topic::kGenerate:
        case Topic::kGenerateStream:
          start_generate(server, exchange, route, route.topic == Topic::kGenerateStream);
          return std::nullopt;
        default:
          break;
      }
      if (!is_slow(route.topic)) return control(server, route, head.method, exchange->body);
      workers.submit([this, exchange, route] {
        exchange->reply = *guarded([&] {
          return std::optional(control(server, route, exchange->head.method, exchange->body));
        });
        exchange->mailbox->post(exchange);
      });
      return std::nullopt;
    });
  }

  std::optional<Reply> handle_metrics(const ExchangePtr& exchange) {
    if (exchange->head.method != Method::kGet) return error_reply(405, "Method Not Allowed");
    if (exchange->head.path != "/metrics") return error_reply(404, "Not Found");
    return guarded([&] {
      return std::optional(
          text_reply(200, "text/plain; version=0.0.4; charset=utf-8", server.metrics().text()));
    });
  }

  // Spreads the connections of a port over the loops, one after the other: unlike with one socket
  // per loop, each gets its share even of a few.
  uint16_t open(const std::string& address, uint16_t port, bool reuse,
                std::shared_ptr<const Service> service, const TlsContext& tls) {
    const int fd = listen_on(address, port, reuse);
    const uint16_t bound = port_of(fd);
    loops.front()->listen(
        fd,
        [this, service, tls](int connection) {
          loops[next++ % loops.size()]->adopt(connection, service, tls);
        },
        tls ? "" : excuse());
    return bound;
  }

  std::shared_ptr<Service> service(size_t connections) {
    auto made = std::make_shared<Service>();
    const Options& options = server.options();
    made->held = &server.held_bytes();
    made->gate = std::make_shared<Gate>(connections);
    made->patience.idle = options.http_idle_seconds * uint64_t{1000};
    made->patience.request = options.http_request_seconds * uint64_t{1000};
    return made;
  }

  Server& server;
  std::vector<std::unique_ptr<Loop>> loops;
  size_t next = 0;  // only on the first loop's thread
  uint16_t port = 0, metrics_port = 0;
  Workers workers;  // last: its tasks use the rest
};

HttpServer::HttpServer(Server& server) : state_(std::make_unique<State>(server)) {
  State* state = state_.get();
  const Options& options = server.options();
  const TlsContext tls = make_tls(options.http_tls);
  for (unsigned i = 0; i < std::max(options.http_threads, 1u); ++i)
    state->loops.push_back(std::make_unique<Loop>());
  if (options.http) {
    const std::shared_ptr<Service> service = state->service(options.http_max_connections);
    service->check = [&options](const Head& head) { return check_access(options, head); };
    service->handle = [state](const ExchangePtr& exchange) { return state->handle(exchange); };
    service->max_body_bytes = options.max_request_bytes;
    if (!options.http_allow_origins.empty())
      service->dress = [&options](const Head& head, Reply& reply) {
        add_origin(options, head, reply);
      };
    state->port =
        state->open(options.http_address, options.http_port, options.reuse_http_port, service, tls);
  }
  if (options.metrics) {
    const std::shared_ptr<Service> service = state->service(kMetricsConnections);
    service->check = [&options](const Head& head) { return check_metrics_access(options, head); };
    service->handle = [state](const ExchangePtr& exchange) {
      return state->handle_metrics(exchange);
    };
    state->metrics_port = state->open(options.metrics_address, options.metrics_port, false, service,
                                      make_tls(options.metrics_tls));
  }
  for (const std::unique_ptr<Loop>& loop : state->loops) loop->start();
}

HttpServer::~HttpServer() {
  for (const std::unique_ptr<Loop>& loop : state_->loops) loop->drain();
  for (const std::unique_ptr<Loop>& loop : state_->loops) loop->finish(kFlushMs);
}

uint16_t HttpServer::port() const { return state_->port; }
uint16_t HttpServer::metrics_port() const { return state_->metrics_port; }

void HttpServer::stop() {
  for (const std::unique_ptr<Loop>& loop : state_->loops) loop->drain();
  // Requests that are still coming are waited for; those that the core has are its to answer.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::seconds(state_->server.options().exit_timeout_seconds);
  const auto reading = [this] {
    for (const std::unique_ptr<Loop>& loop : state_->loops)
      if (loop->reading()) return true;
    return false;
  };
  while (reading() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace anymps::server
