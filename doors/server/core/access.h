// SPDX-License-Identifier: Apache-2.0
// Who may call what: the key of the server, and the groups of calls that the operator has closed to
// those without a header of their choice (Triton's restricted APIs). HTTP and gRPC ask the same
// here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anymps::server {

// Groups of calls, with Triton's names (api_names). A call may belong to several.
enum Api : uint32_t {
  kNoApi = 0,
  kHealthApi = 1 << 0,
  kMetadataApi = 1 << 1,
  kInferenceApi = 1 << 2,
  kSharedMemoryApi = 1 << 3,
  kModelConfigApi = 1 << 4,
  kModelRepositoryApi = 1 << 5,
  kStatisticsApi = 1 << 6,
  kTraceApi = 1 << 7,
  kLoggingApi = 1 << 8,
};
using Apis = uint32_t;

std::optional<Api> parse_api(std::string_view name);
std::string api_names();  // "health, metadata, ..."

// Calls of these groups must show the header.
struct Restriction {
  Apis apis = 0;
  std::string header, value;
};

// Takes as long for a wrong secret as for the right one.
bool same_secret(std::string_view given, std::string_view secret);

// `header(name)`: a header of the call, or nullopt. Names are in lower case.
template <class Header>
bool shows_key(const std::string& key, Header&& header) {
  constexpr std::string_view kBearer = "Bearer ";
  if (key.empty()) return true;
  if (const std::optional<std::string_view> given = header("x-api-key");
      given && same_secret(*given, key))
    return true;
  const std::optional<std::string_view> given = header("authorization");
  return given && given->starts_with(kBearer) && same_secret(given->substr(kBearer.size()), key);
}

// The restriction that a call of these groups does not meet; nullptr: it may go on.
template <class Header>
const Restriction* unmet(const std::vector<Restriction>& restrictions, Apis apis, Header&& header) {
  for (const Restriction& restriction : restrictions) {
    if ((restriction.apis & apis) == 0) continue;
    const std::optional<std::string_view> given = header(restriction.header);
    if (!given || !same_secret(*given, restriction.value)) return &restriction;
  }
  return nullptr;
}

// 127.0.0.1 and its like, ::1, localhost.
bool is_loopback(const std::string& address);

}  // namespace anymps::server
