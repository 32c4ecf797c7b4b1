// SPDX-License-Identifier: Apache-2.0
// A handler of gRPC is called when the message of its call is there: a caller without the key has
// then filled the memory already. So the key, and what closed groups of calls ask for, is looked
// for when the call's metadata come. gRPC has a hook for that in its credentials, but its C++
// classes open it for TLS alone; its C interface, which these credentials use, opens it for every
// port. A server that shuts down cancels the calls that come; those that the hook refuses before
// that are told to try elsewhere.
//
// The hook costs each call about a tenth of what a small one takes: gRPC copies the metadata for it
// and goes on with a context of its own. So it is there from the beginning only if something is
// asked of calls, and else from when the server ends. gRPC looks at `process` for each call; it is
// the one word that changes then.
#include "server/grpc/credentials.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "server/core/access.h"
#include "server/core/request.h"

namespace anymps::server {
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

struct Method {
  std::string_view name;
  Api api;
};

constexpr Method kMethods[] = {
    {"ModelInfer", kInferenceApi},
    {"ModelStreamInfer", kInferenceApi},
    {"ServerLive", kHealthApi},
    {"ServerReady", kHealthApi},
    {"ModelReady", kHealthApi},
    {"ServerMetadata", kMetadataApi},
    {"ModelMetadata", kMetadataApi},
    {"ModelConfig", kModelConfigApi},
    {"ModelStatistics", kStatisticsApi},
    {"RepositoryIndex", kModelRepositoryApi},
    {"RepositoryModelLoad", kModelRepositoryApi},
    {"RepositoryModelUnload", kModelRepositoryApi},
    {"SystemSharedMemoryStatus", kSharedMemoryApi},
    {"SystemSharedMemoryRegister", kSharedMemoryApi},
    {"SystemSharedMemoryUnregister", kSharedMemoryApi},
    {"CudaSharedMemoryStatus", kSharedMemoryApi},
    {"CudaSharedMemoryRegister", kSharedMemoryApi},
    {"CudaSharedMemoryUnregister", kSharedMemoryApi},
    {"TraceSetting", kTraceApi},
    {"LogSettings", kLoggingApi},
};

Api api_of(std::string_view path) {
  constexpr std::string_view kService = "/inference.GRPCInferenceService/";
  if (path.starts_with("/grpc.health.v1.Health/")) return kHealthApi;
  if (path.starts_with(kService))
    for (const Method& method : kMethods)
      if (path.substr(kService.size()) == method.name) return method.api;
  return kNoApi;  // there is no such method: whoever shows the key is told so
}

// OK if the call may be made: it shows the key, as `authorization: Bearer KEY` or `x-api-key: KEY`
// (health needs none), and what --grpc-restricted-protocol asks of calls of its group.
std::pair<grpc_status_code, std::string> judge(const Options& options,
                                               std::span<const grpc_metadata> metadata) {
  const auto header = [&](std::string_view name) -> std::optional<std::string_view> {
    for (const grpc_metadata& entry : metadata)
      if (view(entry.key) == name) return view(entry.value);
    return std::nullopt;
  };
  const Api api = api_of(header(":path").value_or(""));
  if (api != kHealthApi && !shows_key(options.api_key, header))
    return {GRPC_STATUS_UNAUTHENTICATED,
            "this server asks for its API key: send the metadata 'authorization: Bearer KEY' or "
            "'x-api-key: KEY'"};
  if (const Restriction* restriction = unmet(options.grpc_restricted, api, header))
    return {GRPC_STATUS_UNAVAILABLE,
            "This protocol is restricted, expecting header '" + restriction->header + "'"};
  return {GRPC_STATUS_OK, ""};
}

bool asks_for_something(const Options& options) {
  return !options.api_key.empty() || !options.grpc_restricted.empty();
}

grpc_server_credentials* make_credentials(const TlsOptions& tls) {
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

class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(grpc_server_credentials* made) : made_(made) {}
  ~Credentials() override { grpc_server_credentials_release(made_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), made_);
  }

  grpc_server_credentials* made_;
};

}  // namespace

Door::Door(const Options& options)
    : options_(options),
      made_(make_credentials(options.grpc_tls)),
      credentials_(std::make_shared<Credentials>(made_)) {
  grpc_server_credentials_set_auth_metadata_processor(
      made_, {asks_for_something(options_) ? check : nullptr, nullptr, this});
}

void Door::close() {
  closed_ = true;
  if (!asks_for_something(options_))
    grpc_server_credentials_set_auth_metadata_processor(made_, {check, nullptr, this});
}

void Door::check(void* door, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                 grpc_process_auth_metadata_done_cb done, void* call) {
  const Door& self = *static_cast<const Door*>(door);
  const auto [code, why] =
      self.closed_.load(std::memory_order_relaxed)
          ? std::pair(GRPC_STATUS_UNAVAILABLE, std::string("the server is shutting down"))
          : judge(self.options_, {metadata, count});
  done(call, nullptr, 0, nullptr, 0, code, why.c_str());
}

}  // namespace anymps::server
