// SPDX-License-Identifier: Apache-2.0
#include "server/core/access.h"

#include <arpa/inet.h>

#include <utility>

namespace anymps::server {
namespace {

constexpr std::pair<std::string_view, Api> kApis[] = {{"health", kHealthApi},
                                                      {"metadata", kMetadataApi},
                                                      {"inference", kInferenceApi},
                                                      {"shared-memory", kSharedMemoryApi},
                                                      {"model-config", kModelConfigApi},
                                                      {"model-repository", kModelRepositoryApi},
                                                      {"statistics", kStatisticsApi},
                                                      {"trace", kTraceApi},
                                                      {"logging", kLoggingApi}};

}  // namespace

std::optional<Api> parse_api(std::string_view name) {
  for (const auto& [known, api] : kApis)
    if (known == name) return api;
  return std::nullopt;
}

std::string api_names() {
  std::string names;
  for (const auto& [name, api] : kApis) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(c ^ secret[i]);
  }
  return difference == 0;
}

bool is_loopback(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, address.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return address == "localhost";
}

}  // namespace anymps::server
