// SPDX-License-Identifier: Apache-2.0
#include "server/core/server.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "anymps/anymps.h"
#include "server/core/clock.h"
#include "server/core/response_cache.h"
#include "server/core/validate.h"
#include "server/memory/buffer_pool.h"
#include "server/memory/held_bytes.h"
#include "server/memory/shared_memory.h"
#include "server/observation/logger.h"
#include "server/observation/metrics.h"
#include "server/observation/trace.h"
#include "server/repository/repository.h"
#include "server/scheduling/rate_limiter.h"
#include "server/scheduling/refusal.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

constexpr const char* kExtensions[] = {"classification",
                                       "sequence",
                                       "model_repository",
                                       "model_repository(unload_dependents)",
                                       "schedule_policy",
                                       "model_configuration",
                                       "system_shared_memory",
                                       "binary_tensor_data",
                                       "parameters",
                                       "statistics",
                                       "trace",
                                       "logging"};

// "size=1048576" of --cache-config local,size=1048576.
uint64_t cache_bytes(const Options& options) {
  uint64_t bytes = 0;
  for (const auto& [name, setting] : options.cache_config) {
    const std::string_view text = setting;
    const std::string_view number = text.starts_with("size=") ? text.substr(5) : text;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bytes);
    if ((name != "local" && name != "size") || error != std::errc() ||
        end != number.data() + number.size())
      throw Error(Code::kInvalidArgument, "response cache '" + name + "' with the setting '" +
                                              setting +
                                              "' is not supported; give local,size=BYTES");
  }
  return bytes;
}

// As the engine reads it; it has refused whatever is not a number when it was loaded.
std::chrono::milliseconds max_buffer_age() {
  const char* text = std::getenv("MPS_MAX_BUFFER_AGE");
  return std::chrono::milliseconds(text && *text ? std::strtoll(text, nullptr, 10) : 60000);
}

template <typename Tensor>
void describe(const Tensor& tensor, bool batched,
              inference::ModelMetadataResponse::TensorMetadata& to) {
  to.set_name(tensor.name());
  const std::optional<amps_dtype> dtype = serving::numbered_datatype(tensor.data_type());
  to.set_datatype(std::string(dtype ? serving::datatype_name(*dtype) : "<invalid>"));
  if (batched) to.add_shape(-1);
  for (const int64_t extent : tensor.dims()) to.add_shape(extent);
}

}  // namespace

struct Server::State {
  State(Options given, const Server& server)
      : options(std::move(given)),
        logger(options),
        tracer(options),
        limiter(options.rate_limit, options.rate_limit_resources),
        cache(cache_bytes(options)),
        repository(services()),
        metrics(server) {}

  Services services() {
    return {&options, &limiter, &cache,
            [this](char level, const std::string& message) {
              if (level == 'E') logger.error(message);
              if (level == 'W') logger.warning(message);
              if (level == 'I') logger.info(message);
              if (level == 'V') logger.verbose(1, message);
            },
            [this](const Request& request, const std::string& version) {
              tracer.finish(request, version);
            }};
  }

  const Options options;
  // One of the largest requests fits in any case, packed and unpacked.
  HeldBytes held_bytes{
      std::max(options.max_held_bytes, 2 * options.max_request_bytes + (uint64_t{1} << 20))};
  Logger logger;
  Tracer tracer;
  SharedMemory shared_memory{options.allow_client_shm};
  RateLimiter limiter;
  ResponseCache cache;
  Repository repository;
  MetricsPage metrics;
  const std::chrono::milliseconds buffer_age = max_buffer_age();
  std::atomic<bool> started{false}, stopping{false};
};

Server::Server(Options options) : state_(std::make_unique<State>(std::move(options), *this)) {}
Server::~Server() = default;

void Server::start() {
  state_->repository.start();
  state_->started = true;
}

bool Server::stop() {
  state_->stopping = true;
  return state_->repository.stop(std::chrono::seconds(state_->options.exit_timeout_seconds));
}

const Options& Server::options() const { return state_->options; }
bool Server::live() const { return state_->started; }

bool Server::ready() const {
  return state_->started && !state_->stopping &&
         (!state_->options.strict_readiness || state_->repository.all_ready());
}

bool Server::model_ready(const std::string& model, const std::string& version) const {
  return state_->repository.ready(model, parse_version(version));
}

inference::ServerMetadataResponse Server::metadata() const {
  inference::ServerMetadataResponse response;
  response.set_name(state_->options.server_id);
  response.set_version(amps_version());
  for (const std::string_view extension : kExtensions)
    if (extension != "system_shared_memory" || state_->options.allow_client_shm)
      response.add_extensions(extension.data());
  return response;
}

inference::ModelMetadataResponse Server::model_metadata(const std::string& model,
                                                        const std::string& version) const {
  const auto found = state_->repository.find(model, parse_version(version));
  const inference::ModelConfig& config = found->config();
  inference::ModelMetadataResponse response;
  response.set_name(model);
  if (!version.empty())
    response.add_versions(found->version_text());
  else
    for (const auto& ready : state_->repository.ready_versions(model))
      response.add_versions(ready->version_text());
  response.set_platform(config.platform().empty() ? config.backend() : config.platform());
  const bool batched = config.max_batch_size() > 0;
  for (const auto& input : config.input()) describe(input, batched, *response.add_inputs());
  for (const auto& output : config.output()) describe(output, batched, *response.add_outputs());
  return response;
}

inference::ModelConfig Server::model_config(const std::string& model,
                                            const std::string& version) const {
  return state_->repository.find(model, parse_version(version))->config();
}

inference::ModelStatisticsResponse Server::statistics(const std::string& model,
                                                      const std::string& version) const {
  const int64_t number = parse_version(version);
  inference::ModelStatisticsResponse response;
  const auto versions = state_->repository.ready_versions(model);
  if (versions.empty() && !model.empty())
    throw Error(Code::kInvalidArgument, "requested model '" + model + "' is not available");
  for (const auto& ready : versions) {
    if (!model.empty() && number != -1 && ready->version() != number) continue;
    inference::ModelStatistics& to = *response.add_model_stats();
    to = ready->metrics().read();
    to.set_name(ready->name());
    to.set_version(ready->version_text());
  }
  if (response.model_stats().empty() && !model.empty())
    throw Error(Code::kInvalidArgument,
                "requested model version is not available for model '" + model + "'");
  return response;
}

inference::RepositoryIndexResponse Server::repository_index(bool ready_only) const {
  return state_->repository.index(ready_only);
}

void Server::load_model(const std::string& model, const Parameters& parameters) {
  if (state_->stopping) throw Error(Code::kUnavailable, "Server not ready");
  state_->repository.load(model, parameters);
}

void Server::unload_model(const std::string& model, bool with_dependents) {
  if (state_->stopping) throw Error(Code::kUnavailable, "Server not ready");
  state_->repository.unload(model, with_dependents);
}

void Server::infer(RequestPtr request) {
  if (!request->times.received) request->times.received = now_ns();
  if (!state_->started || state_->stopping) return request->fail(Code::kUnavailable, kStopping);
  std::shared_ptr<ModelVersion> version;
  try {
    version = state_->repository.find(request->model, request->version);
  } catch (const Error& error) {
    return request->fail(error.code(), error.what());
  }
  state_->tracer.sample(*request);
  ModelVersion::infer(version, std::move(request));
}

std::vector<ModelFigures> Server::figures() const {
  std::vector<ModelFigures> list;
  for (const auto& ready : state_->repository.ready_versions()) {
    const ModelMetrics& metrics = ready->metrics();
    list.push_back({ready->name(), ready->version_text(), metrics.pending(), metrics.failures(),
                    metrics.latency_ms({0.5, 0.9, 0.99})});
  }
  return list;
}

CacheFigures Server::cache_figures() const {
  const ResponseCache::Usage usage = state_->cache.usage();
  return {state_->cache.enabled(), usage.bytes, usage.capacity,
          usage.entries,           usage.hits,  usage.misses,
          usage.evictions};
}

void Server::trim() {
  for (size_t i = 0; i < amps_device_count(); ++i) {
    amps_device* device = nullptr;
    if (amps_device_get(amps_device_name_at(i), &device) == AMPS_OK) amps_device_trim(device);
  }
  trim_buffers(state_->buffer_age);
}

Logger& Server::logger() { return state_->logger; }
MetricsPage& Server::metrics() { return state_->metrics; }
SharedMemory& Server::shared_memory() { return state_->shared_memory; }
HeldBytes& Server::held_bytes() { return state_->held_bytes; }
Tracer& Server::tracer() { return state_->tracer; }

}  // namespace anymps::server
