// SPDX-License-Identifier: Apache-2.0
// What a connection and a call must show before anything of a request is read: TLS, and the key.
// When the server ends, no call is let in any more.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <atomic>
#include <memory>

#include "server/core/options.h"

namespace server {

// Who may come in. It must outlive the server that gets its credentials.
struct Door {
  const Options& options;
  std::atomic<bool> closed{false};
};

// An Error names a file that cannot be used.
std::shared_ptr<grpc::ServerCredentials> make_credentials(Door& door);

}  // namespace server
