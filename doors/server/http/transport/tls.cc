// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/tls.h"

#include <openssl/err.h>

#include <string>

#include "serving/error.h"

namespace anymps::server::http {
namespace {

void check(bool good, const std::string& what, const std::string& file) {
  if (good) return;
  char reason[256] = "";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, reason, sizeof reason);
  ERR_clear_error();
  throw serving::Error(serving::Code::kInvalidArgument,
                       "cannot use " + what + " '" + file + "': " + reason);
}

}  // namespace

TlsContext make_tls(const TlsOptions& options) {
  if (!options.enabled) return nullptr;
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  check(context != nullptr, "TLS", "");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  check(SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) == 1,
        "the server certificate", options.certificate);
  check(SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
            SSL_CTX_check_private_key(context.get()) == 1,
        "the server key", options.key);
  if (!options.root.empty()) {
    check(SSL_CTX_load_verify_locations(context.get(), options.root.c_str(), nullptr) == 1,
          "the root certificate", options.root);
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(options.root.c_str()));
  }
  if (options.mutual) {
    check(!options.root.empty(), "mutual TLS without a root certificate", "");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

TlsSession accept_tls(const TlsContext& context, int fd) {
  TlsSession session(SSL_new(context.get()));
  if (session == nullptr || SSL_set_fd(session.get(), fd) != 1) return nullptr;
  SSL_set_accept_state(session.get());
  return session;
}

}  // namespace anymps::server::http
