// SPDX-License-Identifier: Apache-2.0
// The KServe v2 protocol over HTTP/1.1, with Triton's extensions; the page with the metrics; the
// status page. libevent: one event loop per thread, all listening on the same port.
#pragma once

#include <cstdint>
#include <memory>

namespace anymps::server {

class Server;

class HttpServer {
 public:
  // Begins to listen; an Error (kUnavailable) names the address and the port if it cannot.
  explicit HttpServer(Server& server);
  ~HttpServer();
  uint16_t port() const;
  uint16_t metrics_port() const;
  // Takes no new connections. Those that are there get an answer to what they send, their last, or
  // are closed when nothing comes.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anymps::server
