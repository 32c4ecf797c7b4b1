// SPDX-License-Identifier: Apache-2.0
// TLS of the HTTP side: certificate, key, and the authority that client certificates must come
// from.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "server/core/options.h"

namespace anymps::server::http {

using TlsContext = std::shared_ptr<SSL_CTX>;
struct FreeTls {
  void operator()(SSL* session) const { SSL_free(session); }
};
using TlsSession = std::unique_ptr<SSL, FreeTls>;

// nullptr if TLS is off. An Error (kInvalidArgument) names the file that cannot be used.
TlsContext make_tls(const TlsOptions& options);
// The server's side of a connection.
TlsSession accept_tls(const TlsContext& context, int fd);

}  // namespace anymps::server::http
