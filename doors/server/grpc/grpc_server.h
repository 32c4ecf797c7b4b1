// SPDX-License-Identifier: Apache-2.0
// The KServe v2 protocol over gRPC: GRPCInferenceService with Triton's extensions and
// grpc.health.v1.
#pragma once

#include <cstdint>
#include <memory>

namespace anymps::server {

class Server;

class GrpcServer {
 public:
  // Begins to listen; an Error (kUnavailable) names the address and the port if it cannot.
  explicit GrpcServer(Server& server);
  ~GrpcServer();
  uint16_t port() const;
  // Takes no new calls; those under way are answered.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anymps::server
