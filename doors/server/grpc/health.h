// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1, which load balancers and Kubernetes ask: the server serves when it is ready. As
// with Triton, every name of a service gets the same answer.
#pragma once

#include "health.grpc.pb.h"
#include "server/grpc/calls.h"

namespace anymps::server {

class HealthService
    : public grpc::health::v1::Health::WithAsyncMethod_Watch<grpc::health::v1::Health::Service> {
 public:
  explicit HealthService(Server& server) : server_(server) {}
  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;

 private:
  Server& server_;
};

// Watch: a message now, and one each time that it changes.
void await_watch(Calls& calls, HealthService& service, grpc::ServerCompletionQueue* queue);

}  // namespace anymps::server
