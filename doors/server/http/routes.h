// SPDX-License-Identifier: Apache-2.0
// What the path of a request asks for.
#pragma once

#include <string>
#include <string_view>

namespace anymps::server::http {

enum class Topic {
  kUnknown,
  kStatusPage,       // /
  kStatusJson,       // /status.json
  kServerMetadata,   // /v2
  kLive,             // /v2/health/live
  kReady,            // /v2/health/ready
  kModelMetadata,    // /v2/models/M[/versions/V]
  kModelReady,       // .../ready
  kModelConfig,      // .../config
  kStatistics,       // .../stats, /v2/models/stats
  kInfer,            // .../infer
  kGenerate,         // .../generate
  kGenerateStream,   // .../generate_stream
  kTraceSetting,     // /v2/trace/setting, .../trace/setting
  kRepositoryIndex,  // /v2/repository/index
  kLoad,             // /v2/repository/models/M/load
  kUnload,           // /v2/repository/models/M/unload
  kSystemMemory,     // /v2/systemsharedmemory[/region/R]/status|register|unregister
  kCudaMemory,       // /v2/cudasharedmemory[/region/R]/status|register|unregister
  kLogging,          // /v2/logging
};

struct Route {
  Topic topic = Topic::kUnknown;
  std::string model, version;
  std::string repository;      // of /v2/repository/R/...
  std::string region, action;  // of shared memory
};

Route find_route(std::string_view path);

}  // namespace anymps::server::http
