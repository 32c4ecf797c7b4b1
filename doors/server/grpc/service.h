// SPDX-License-Identifier: Apache-2.0
// The methods of GRPCInferenceService that do not infer: each asks the server and answers at once.
#pragma once

#include <atomic>

#include "server/grpc/calls.h"

namespace anymps::server {

class Service : public InferService {
 public:
  explicit Service(Server& server) : server_(server) {}
  int under_way() const { return under_way_.load(); }

// Declares one method: `METHOD(Context*, const METHODRequest*, METHODResponse*)`.
#define ANYMPS_GRPC_METHOD(METHOD)                                                             \
  grpc::Status METHOD(grpc::ServerContext* context, const inference::METHOD##Request* request, \
                      inference::METHOD##Response* response) override
  ANYMPS_GRPC_METHOD(ServerLive);
  ANYMPS_GRPC_METHOD(ServerReady);
  ANYMPS_GRPC_METHOD(ModelReady);
  ANYMPS_GRPC_METHOD(ServerMetadata);
  ANYMPS_GRPC_METHOD(ModelMetadata);
  ANYMPS_GRPC_METHOD(ModelConfig);
  ANYMPS_GRPC_METHOD(ModelStatistics);
  ANYMPS_GRPC_METHOD(RepositoryIndex);
  ANYMPS_GRPC_METHOD(RepositoryModelLoad);
  ANYMPS_GRPC_METHOD(RepositoryModelUnload);
  ANYMPS_GRPC_METHOD(SystemSharedMemoryStatus);
  ANYMPS_GRPC_METHOD(SystemSharedMemoryRegister);
  ANYMPS_GRPC_METHOD(SystemSharedMemoryUnregister);
  ANYMPS_GRPC_METHOD(CudaSharedMemoryStatus);
  ANYMPS_GRPC_METHOD(CudaSharedMemoryRegister);
  ANYMPS_GRPC_METHOD(CudaSharedMemoryUnregister);
  ANYMPS_GRPC_METHOD(TraceSetting);
  ANYMPS_GRPC_METHOD(LogSettings);
#undef ANYMPS_GRPC_METHOD

 private:
  // Runs `fn`; its Error becomes the status.
  template <typename Fn>
  grpc::Status answer(Fn&& fn);

  Server& server_;
  std::atomic<int> under_way_{0};
};

}  // namespace anymps::server
