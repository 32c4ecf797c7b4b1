// SPDX-License-Identifier: Apache-2.0
// A handler of gRPC is called when the message of its call is there: a caller without the key has
// then filled the memory already. So the key is looked for when the call's metadata come. gRPC has
// a hook for that in its credentials, but its C++ classes open it for TLS alone; its C interface,
// which these credentials use, opens it for every port. A server that shuts down cancels the calls
// that come; those that the hook refuses before that are told to try elsewhere.
#include "server/grpc/credentials.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "server/core/request.h"

namespace server {
namespace {

std::string read_file(const char* flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && text.empty())
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: the file '{}' cannot be read", flag, path));
  return text;
}

std::string_view view(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Health is told to everybody.
bool needs_key(std::string_view path) {
  constexpr std::string_view kService = "/inference.GRPCInferenceService/";
  if (path.starts_with("/grpc.health.v1.Health/")) return false;
  if (!path.starts_with(kService)) return true;
  path.remove_prefix(kService.size());
  return path != "ServerLive" && path != "ServerReady" && path != "ModelReady";
}

// Takes as long for a wrong key as for the right one.
bool is_key(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(c ^ key[i]);
  }
  return difference == 0;
}

bool may_call(const Options& options, std::span<const grpc_metadata> metadata) {
  constexpr std::string_view kBearer = "Bearer ";
  bool shown = false, needed = true;
  for (const grpc_metadata& entry : metadata) {
    const std::string_view name = view(entry.key), value = view(entry.value);
    if (name == ":path") needed = needs_key(value);
    if (name == "x-api-key" && is_key(value, options.api_key)) shown = true;
    if (name == "authorization" && value.starts_with(kBearer) &&
        is_key(value.substr(kBearer.size()), options.api_key))
      shown = true;
  }
  return shown || !needed;
}

void check_call(void* state, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                grpc_process_auth_metadata_done_cb done, void* call) {
  const Door& door = *static_cast<const Door*>(state);
  grpc_status_code code = GRPC_STATUS_OK;
  const char* why = nullptr;
  if (door.closed.load(std::memory_order_relaxed)) {
    code = GRPC_STATUS_UNAVAILABLE;
    why = "the server is shutting down";
  } else if (!door.options.api_key.empty() && !may_call(door.options, {metadata, count})) {
    code = GRPC_STATUS_UNAUTHENTICATED;
    why =
        "this server asks for its API key: send the metadata 'authorization: Bearer KEY' or "
        "'x-api-key: KEY'";
  }
  done(call, nullptr, 0, nullptr, 0, code, why);
}

class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(Door& door) : made_(make(door.options.grpc_tls)) {
    grpc_server_credentials_set_auth_metadata_processor(made_, {check_call, nullptr, &door});
  }
  ~Credentials() override { grpc_server_credentials_release(made_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  static grpc_server_credentials* make(const TlsOptions& tls) {
    if (!tls.enabled) return grpc_insecure_server_credentials_create();
    const std::string key = read_file("--grpc-server-key", tls.key);
    const std::string certificate = read_file("--grpc-server-cert", tls.certificate);
    const std::string root = tls.root.empty() ? "" : read_file("--grpc-root-cert", tls.root);
    grpc_ssl_pem_key_cert_pair pair{key.c_str(), certificate.c_str()};
    return grpc_ssl_server_credentials_create_ex(
        root.empty() ? nullptr : root.c_str(), &pair, 1,
        tls.mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                   : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
        nullptr);
  }
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), made_);
  }

  grpc_server_credentials* made_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> make_credentials(Door& door) {
  return std::make_shared<Credentials>(door);
}

}  // namespace server
