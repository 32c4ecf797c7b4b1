// SPDX-License-Identifier: Apache-2.0
// What a connection and a call must show before anything of a request is read: TLS, and the key.
// When the server ends, no call is let in any more.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <atomic>
#include <memory>

#include "server/core/options.h"

namespace anymps::server {

// Who may come in. It must outlive the server that has its credentials.
class Door {
 public:
  explicit Door(const Options& options);  // an Error names a file that cannot be used
  const std::shared_ptr<grpc::ServerCredentials>& credentials() const { return credentials_; }
  void close();

 private:
  static void check(void* door, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                    grpc_process_auth_metadata_done_cb done, void* call);

  const Options& options_;
  std::atomic<bool> closed_{false};
  grpc_server_credentials* made_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // owns it
};

}  // namespace anymps::server
